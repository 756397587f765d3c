"""Names and types of xMsg, for programs that have them: `from holdfast import xmsg`.

An xMsg topic `domain:subject:type` is the channel `/domain/subject/type`. Unlike xMsg's, patterns
look at whole segments: `data:power` does not match `data:powers`.
"""

import re

# The media type of data whose message states none.
JSON = "application/json"

# What all Bayeux servers take in a segment, but for the character that begins an escape.
_ESCAPED = re.compile(rb"[^A-Za-z0-9\-_!()$@]")
_ESCAPES = re.compile(r"(?:~[0-9A-F]{2})+")
_INT32, _INT64 = 2**31, 2**63
_TYPES = {
    "string": "text/string",
    "sfixed32": "binary/sfixed32",
    "sfixed64": "binary/sfixed64",
    "double": "binary/double",
}


def channel_of(topic: str) -> str:
    """Return the channel of a topic: characters that Bayeux does not allow become `~` and hex.

    Raises `ValueError` if a part of the topic is empty or contains `*`.
    """
    parts = topic.split(":")
    if "" in parts or "*" in topic:
        raise ValueError(f"{topic!r} is not a topic of xMsg")
    return "".join(f"/{_escape(part)}" for part in parts)


def topic_of(channel: str) -> str:
    """Return the topic whose channel this is. Raises `ValueError` if there is none."""
    topic = _ESCAPES.sub(_unescape, channel.removeprefix("/").replace("/", ":"))
    if channel_of(topic) != channel:
        raise ValueError(f"{channel!r} corresponds to no topic of xMsg")
    return topic


def patterns_of(topic: str) -> tuple[str, str]:
    """Return what to subscribe to for this topic and all below it, as xMsg subscribes."""
    channel = channel_of(topic)
    return channel, f"{channel}/**"


def mime_of(data: object) -> str:
    """Return xMsg's type of a value: `application/json` if xMsg has none for it."""
    if not isinstance(data, list | tuple):
        return _TYPES.get(_type_of(data), JSON)
    types = {_type_of(each) for each in data}
    if types == {"sfixed32", "sfixed64"}:
        types.remove("sfixed32")
    [one] = types if len(types) == 1 else [""]
    return f"binary/array-{one}" if one else JSON


def _type_of(data: object) -> str:
    """Return xMsg's word for a single value, empty if there is none."""
    match data:
        case str():
            return "string"
        case bool():
            return ""
        case int() if -_INT32 <= data < _INT32:
            return "sfixed32"
        case int() if -_INT64 <= data < _INT64:
            return "sfixed64"
        case float():
            return "double"
        case _:
            return ""


def _escape(part: str) -> str:
    return _ESCAPED.sub(lambda found: b"~%02X" % ord(found[0]), part.encode()).decode()


def _unescape(found: re.Match[str]) -> str:
    return bytes.fromhex(found[0].replace("~", "")).decode(errors="replace")
