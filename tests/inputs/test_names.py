"""Names of columns as errors list them."""

from dpfrugal.inputs.names import MOST_NAMES, listed


def test_listed__shows_the_first_names_and_counts_the_rest() -> None:
    assert listed(["a", "it's", 3]) == "'a', \"it's\", 3"
    many = [f"c{k}" for k in range(MOST_NAMES + 5)]
    assert listed(many[:MOST_NAMES]).endswith(f"'c{MOST_NAMES - 1}'")
    assert listed(many).endswith(f"'c{MOST_NAMES - 1}' and 5 more")
    assert listed([]) == ""
