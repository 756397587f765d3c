"""Writes the tables of the documentation that can be read off the code.

`python -m docs.generate` renews them in place; a test says when that was forgotten. A table stands
between two comments, `<!-- made by docs.generate: NAME -->` and `<!-- end -->`.
"""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from unittest.mock import Mock

import orjson
from pydantic.fields import FieldInfo

from app.bayeux.errors import BayeuxError
from app.bayeux.options import Options
from app.bayeux.server import Bayeux
from app.delivery.error_codes import CODES
from app.delivery.keeper import Keeper
from app.delivery.letter_room import LetterRoom
from app.delivery.node import Node
from app.journal.clerk import Clerk
from app.settings import Settings
from app.web.metrics import BayeuxCollector
from app.web.room import Room

DOCS = Path(__file__).parent

# A group of settings begins with this one.
GROUPS = {
    "host": "Where it listens and what it needs",
    "transports": "Protocol",
    "ack": "Extensions that come with it",
    "browser_cookie_name": "The browser's cookie",
    "callback_parameter": "Callback-polling and WebSocket",
    "max_message_size": "Limits",
}

MEANINGS = {
    BayeuxError.CHANNEL_MISSING: "No `channel`; or unsubscribing where nobody is subscribed",
    BayeuxError.DATA_MISSING: "A publish without `data` (`null` is data)",
    BayeuxError.DELIVERY_INVALID: "An option or a verdict in `ext.delivery` is unknown, is not "
    "offered, or has a value that makes no sense; it is named",
    BayeuxError.NOT_SUPPORTED: "A channel or a key of `ext` is reserved for a feature that this "
    "server does not have; it is named",
    BayeuxError.ADVICE_INVALID: "`advice` is no object",
    BayeuxError.EXT_INVALID: "`ext` is no object; or `ack`, `timesync` in it cannot be read: the "
    "part is named",
    BayeuxError.HANDSHAKE_BATCHED: "The message came in one request with a handshake",
    BayeuxError.TEXT_INVALID: "A text in the message has half of a surrogate pair, as one that was "
    "cut within an emoji",
    BayeuxError.NUMBER_INVALID: "A number in the message is beyond the range of doubles, as 1e400",
    BayeuxError.MESSAGE_TOO_DEEP: "The message is nested deeper than `max_depth`",
    BayeuxError.REQUEST_MALFORMED: "Not JSON, not objects, or empty",
    BayeuxError.TRANSPORT_UNKNOWN: "No transport that is switched on takes such a request; "
    "[callback-polling](callback-polling.md) is off by default",
    BayeuxError.CALLBACK_INVALID: "The name of the JSONP callback is too long or no name",
    BayeuxError.SESSION_UNKNOWN: "No such session, or it belongs to another browser; a connect "
    "is also advised to handshake, and a [newcomer](sessions.md) whose socket came too late",
    BayeuxError.HANDSHAKE_DENIED: "The security policy or an extension said no",
    BayeuxError.CHANNEL_CREATE_DENIED: "The publish would create a channel; also unknown meta "
    "channels",
    BayeuxError.PUBLISH_DENIED: "Policy or authorizers",
    BayeuxError.CREATE_DENIED: "The subscription would create a channel",
    BayeuxError.SUBSCRIBE_DENIED: "Policy or authorizers; also meta channels",
    BayeuxError.SUBSCRIPTION_MISSING: "No `subscription`",
    BayeuxError.SUBSCRIPTION_INVALID: "Neither a channel nor an array of channels, or an empty "
    "array",
    BayeuxError.UNSUBSCRIBE_FAILED: "Unsubscribing from a meta channel",
    BayeuxError.SESSION_NAME_DENIED: "The client may not use this name for its session",
    BayeuxError.SESSIONS_EXCEEDED: "The subject has as many named sessions as it may, or "
    "the `browser` or `address` that is named",
    BayeuxError.ORIGIN_DENIED: "The page's origin is neither ours nor allowed; or a GET for "
    "[callback-polling](callback-polling.md#who-is-served) does not say what page it is from",
    BayeuxError.MESSAGE_DELETED: "An extension dropped the message",
    BayeuxError.CHANNEL_INVALID: "Not a channel name; or publishing to a pattern",
    BayeuxError.MESSAGE_ID_INVALID: "`id` is not of letters and digits",
    BayeuxError.CONNECTION_TYPES_UNSUPPORTED: "The handshake names no connection type of ours",
    BayeuxError.REQUEST_TIMEOUT: "The request did not arrive whole within `request_timeout`",
    BayeuxError.CONNECT_SUPERSEDED: "A newer connect of the session overtook this held one",
    BayeuxError.MESSAGE_TOO_LARGE: "Beyond `max_message_size`",
    BayeuxError.REQUEST_TOO_LARGE: "Beyond `max_request_size` (inflated) or `max_batch`",
    BayeuxError.SUBSCRIPTIONS_EXCEEDED: "Beyond `max_subscriptions`",
    BayeuxError.HOST_UNKNOWN: "The `Host` of the request is none of this server's names: see "
    "`host_name`",
    BayeuxError.MEDIA_TYPE_UNSUPPORTED: "Unknown charset or content encoding, or multipart",
    BayeuxError.SERVER_FAULT: "A policy, an authorizer, a service or an extension failed, or the "
    "server itself; its log says how. A handshake is advised when to come back",
    BayeuxError.BUDGET_EXCEEDED: "The address or the subject has used up its "
    "[budget](operations.md#budgets) of what is named; advice, or `Retry-After`, says when to come "
    "back",
    BayeuxError.WEBSOCKET_VERSION_UNSUPPORTED: "The upgrade asks for another version than 13",
    BayeuxError.TRANSFER_CODING_UNSUPPORTED: "`Transfer-Encoding` is not `chunked` alone",
    BayeuxError.PUBLISHES_EXCEEDED: "So many publishes of the session wait for the store",
    BayeuxError.CHANNEL_HELD_BACK: "The channel is held back, and the publish asked to hear of it",
    BayeuxError.STORE_UNAVAILABLE: "The store is away, or refused; with `unknown` nobody knows "
    "whether the message is kept",
    BayeuxError.SERVER_BUSY: "Handshake refused: rate, load, `max_sessions` or stopping; advice "
    "says when to come back. As the status of a whole request: a fault of ours",
}

_BINARY_UNITS = ((1024**2, "MiB"), (1024, "KiB"))
# By the last word of a setting's name: what makes a large number readable.
_UNITS = {"size": _BINARY_UNITS, "bytes": _BINARY_UNITS, "age": ((24 * 3600 * 1000, "days"),)}


def settings() -> str:
    """All settings, in groups."""
    groups: list[list[str]] = []
    for name, field in Settings.model_fields.items():
        if name in GROUPS:
            groups.append([f"\n## {GROUPS[name]}\n", *_head("Setting", "Default", "Meaning")])
        groups[-1].append(_row(f"`{name}`", _default(name, field), field.description or ""))
    return "\n".join(line for group in groups for line in group) + "\n"


def _default(name: str, field: FieldInfo) -> str:
    value = field.get_default()
    if value is None:
        return "none"
    shown = orjson.dumps(value, default=str).decode()
    for size, unit in _UNITS.get(name.rpartition("_")[2], ()):
        if type(value) is int and value >= size and value % size == 0:
            return f"`{shown}` ({value // size} {unit})"
    return f"`{shown}`"


def errors() -> str:
    """All errors, by code."""
    rows = [
        _row(f"`{error.code}:…:{error.value[1]}`", MEANINGS[error])
        for error in sorted(BayeuxError, key=lambda error: error.code)
    ]
    return _table(("Error", "When"), rows)


def error_codes() -> str:
    """All codes of failed deliveries and refused requests."""
    rows = [_row(f"`{code.text}`", str(code.number), code.meaning) for code in CODES.values()]
    return _table(("Code", "Number", "Meaning"), rows)


def metrics() -> str:
    """What `/metrics` has of this server; that of its process comes from prometheus-client."""
    rows = []
    for metric in BayeuxCollector(_silent_server(), _rooms()).collect():
        suffix = "_total" if metric.type == "counter" else ""
        labels = {name: None for sample in metric.samples for name in sample.labels}
        values = [value for sample in metric.samples for value in sample.labels.values()]
        shown = ", ".join(f"`{name}`: {', '.join(values)}" for name in labels)
        rows.append(_row(f"`{metric.name}{suffix}`", metric.documentation, shown))
    return _table(("Metric", "Meaning", "Labels"), rows)


def _rooms() -> dict[str, Room]:
    return {"main": Room(1), "admin": Room(1)}


def _silent_server() -> Bayeux:
    return Bayeux(
        Options(),
        new_id=str,
        random=float,
        on_ready=lambda: None,
        run_later=lambda work, done: None,
        node=Node("docs", int),
        keeper=Mock(spec=Keeper, letter_room=LetterRoom()),
        witness=Clerk("docs", Mock(), now=0.0, now_ns=int),
    )


def _table(titles: Sequence[str], rows: Iterable[str]) -> str:
    return "\n".join([*_head(*titles), *rows]) + "\n"


def _head(*titles: str) -> list[str]:
    return [_row(*titles), _row(*["---"] * len(titles))]


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


TABLES = {
    "settings": (DOCS / "settings.md", settings),
    "errors": (DOCS / "protocol.md", errors),
    "error codes": (DOCS / "error-codes.md", error_codes),
    "metrics": (DOCS / "operations.md", metrics),
}


def renewed(name: str) -> tuple[Path, str]:
    """A page, and its text with the table as the code has it now."""
    page, make = TABLES[name]
    marked = re.compile(rf"(<!-- made by docs\.generate: {name} -->\n).*?(<!-- end -->)", re.DOTALL)
    text, count = marked.subn(lambda found: found[1] + make() + found[2], page.read_text("utf-8"))
    if count != 1:
        raise ValueError(f"{page.name} must have one place for {name}")
    return page, text


def main() -> None:
    for name in TABLES:
        page, text = renewed(name)
        page.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
