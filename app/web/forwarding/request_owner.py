"""Whose a request is, from its bytes: mostly without decoding it."""

import re
from typing import Final

import orjson

_NAME: Final = b'"clientId"'
_ID: Final = re.compile(rb'"clientId"\s*:\s*"([A-Za-z0-9_-]{29})"')


def client_id_of(body: bytes) -> str | None:
    """Return the client id of the first message, or None if there is none.

    The name occurs once in most requests. A body that is not JSON has none: the process that
    refuses it need not be a particular one.
    """
    if body.count(_NAME) <= 1 and b"\\" not in body:
        found = _ID.search(body)
        return None if found is None else found[1].decode()
    try:
        messages = orjson.loads(body)
    except ValueError:
        return None
    first = messages[0] if isinstance(messages, list) and messages else messages
    client_id = first.get("clientId") if isinstance(first, dict) else None
    return client_id if isinstance(client_id, str) else None
