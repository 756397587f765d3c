"""The header by which programs say to which trace a request belongs, as W3C defines it."""

import re

TRACEPARENT = "traceparent"
_FORM = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")


def is_traceparent(said: object) -> bool:
    """Return whether this is the value of a `traceparent` header."""
    return isinstance(said, str) and _FORM.fullmatch(said) is not None
