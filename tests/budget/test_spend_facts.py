"""What was asked: public facts, recorded as JSON can hold them and as a terminal can show them."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpfrugal as dpf
from dpfrugal.budget import spend_facts
from dpfrugal.budget.spend_facts import LONGEST_TEXT, checked_asked, compact, printable

FACTS: dict[str, Any] = {"column": "ms", "quantiles": (0.5, np.float64(0.9)), "source": "a.csv", "rows": 7, "who": "me"}


def test_asked__is_what_was_given_and_who_asked() -> None:
    found = checked_asked(FACTS)
    assert found == {**FACTS, "quantiles": [0.5, 0.9]}
    assert json.loads(json.dumps(found)) == found
    assert checked_asked(None) == {"who": printable(spend_facts.user())}


def test_asked__names_a_user_without_a_name_by_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.getuid", lambda: 2**31 - 7)
    assert checked_asked({})["who"] == f"user {2**31 - 7}"


def test_asked__refuses_what_is_no_fact() -> None:
    with pytest.raises(dpf.ParameterTypeError, match=r"asked\['data'\] must be text, a number or a list"):
        checked_asked({"data": np.arange(3)})


def test_asked__on_one_line() -> None:
    assert compact(checked_asked(FACTS)) == "q=0.5, 0.9 of ms in a.csv, rows=7, for me"
    assert compact({"quantiles": [0.1, 0.2, 0.3, 0.4, 0.5]}) == "q=0.1, 0.2, 0.3, 0.4, … (5)"
    assert compact({"metric": "latency", "who": "me"}) == "of latency, for me"
    assert compact({"by": ["a", "b"], "windows": None}) == "by=a, b"
    assert compact({}) == ""


@given(st.text(alphabet=st.characters(), max_size=3 * LONGEST_TEXT))
def test_asked__text_can_be_printed_and_encoded(text: str) -> None:
    shown = printable(text)
    assert shown.isprintable()
    assert len(shown) <= LONGEST_TEXT
    shown.encode()
    assert shown == text or not text.isprintable() or len(text) > LONGEST_TEXT
