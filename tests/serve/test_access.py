"""Who is let in: a bearer's token, or the password of basic authentication; whatever else a header holds, no one."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpfrugal.serve.access import is_allowed

TOKENS = ["0123456789abcdef", "geheimes Wört"]


def basic(text: str) -> str:
    return f"Basic {base64.b64encode(text.encode()).decode()}"


@pytest.mark.parametrize("token", TOKENS)
def test_is_allowed__a_token_as_bearer_or_as_password(token: str) -> None:
    for header in (f"Bearer {token}", f"bearer  {token} ", basic(f"anyone:{token}"), basic(f":{token}")):
        assert is_allowed(header, TOKENS)
        assert not is_allowed(header, ["another token of 16"])
        assert not is_allowed(header, [])


@pytest.mark.parametrize(
    "header",
    [None, "", "Bearer", "Bearer ", TOKENS[0], f"Digest {TOKENS[0]}", f"Bearer {TOKENS[0]}x",
     f"Bearer {TOKENS[0][:-1]}", basic(TOKENS[0]), basic(f"{TOKENS[0]}:"), "Basic !!!", "Basic ÿ"],
)  # fmt: skip
def test_is_allowed__nothing_else(header: str | None) -> None:
    assert not is_allowed(header, TOKENS)
    assert is_allowed(header, None)


@given(st.text())
def test_is_allowed__any_header_has_an_answer(header: str) -> None:
    assert not is_allowed(header, TOKENS) or TOKENS[0] in header or TOKENS[1] in header
