"""Who may do what: tokens, as a bearer or as the password of basic authentication, as browsers have it."""

import base64
import hmac
from collections.abc import Iterable
from typing import Final

CHALLENGE: Final = 'Basic realm="dpfrugal", charset="UTF-8"'


def is_allowed(header: str | None, tokens: Iterable[str] | None) -> bool:
    """Whether an Authorization header has one of the tokens; where there are none, everyone may.

    >>> is_allowed("Bearer 0123456789abcdef", ["0123456789abcdef"]), is_allowed(None, ["0123456789abcdef"])
    (True, False)
    """
    if tokens is None:
        return True
    given = _token(header or "")
    matches = [hmac.compare_digest(given, token.encode()) for token in tokens]  # all of them, whichever is right
    return any(matches)


def _token(header: str) -> bytes:
    scheme, _, rest = header.partition(" ")
    if scheme.lower() == "bearer":
        return rest.strip().encode("utf-8", "replace")
    if scheme.lower() == "basic":
        try:
            return base64.b64decode(rest.strip(), validate=True).partition(b":")[2]
        except ValueError:
            pass
    return b""
