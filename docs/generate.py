"""Generates the tables of the documentation from the code.

`python -m docs.generate` rewrites them in place, and those of the console; a test fails if they are
out of date. A table is between the comments `<!-- made by docs.generate: NAME -->` and
`<!-- end -->`.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, starmap
from pathlib import Path
from unittest.mock import Mock

import orjson
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from docs import listing
from holdfast.bayeux.assembly import assemble
from holdfast.bayeux.leaving.table import TABLE
from holdfast.bayeux.server import Bayeux
from holdfast.bayeux.state.backend_figures import BackendFigures
from holdfast.bayeux.wire.client_ids import ClientIds
from holdfast.bayeux.wire.errors import ErrorReply
from holdfast.delivery.basics.error_codes import CODES
from holdfast.delivery.basics.node import Node
from holdfast.delivery.basics.steps import STEPS
from holdfast.delivery.messages.letter_quota import LetterQuota
from holdfast.delivery.ports.other_shards import LogFigures
from holdfast.delivery.ports.store_port import StorePort
from holdfast.journal.writer import JournalWriter
from holdfast.settings import OFTEN_SET, SECTIONS, SET_OFTEN, ChannelSettings, Settings
from holdfast.settings.login import BackendSettings
from holdfast.settings.webhooks import WebhookSettings
from holdfast.units import unit_of
from holdfast.web.admin.alert_limits import AlertLimits
from holdfast.web.admin.alerts import Alerts
from holdfast.web.admin.listed import LISTED
from holdfast.web.front.connection_limit import ConnectionLimit
from holdfast.web.prometheus.backend_families import backend_families
from holdfast.web.prometheus.door_figures import DoorFigures
from holdfast.web.prometheus.metric_families import BayeuxCollector
from holdfast.web.prometheus.shard_families import (
    answering,
    door_families_of,
    families_of,
    restarted,
)
from holdfast.web.scheduling.speaking import OwnStoreRight

DOCS = Path(__file__).parent
CONSOLE = DOCS.parent / "static/console"

MEANINGS = {
    ErrorReply.CHANNEL_MISSING: "The message has no `channel`, or an unsubscribe names a channel "
    "to which the session has not subscribed",
    ErrorReply.DATA_MISSING: "The publish has no `data` (`null` is data)",
    ErrorReply.DELIVERY_INVALID: "`ext.delivery` has an unknown or unsupported option or verdict, "
    "or one with a wrong value; the error names it",
    ErrorReply.NOT_SUPPORTED: "The channel, or a key of `ext`, belongs to a feature that "
    "this server does not have, or not with several workers, or there is no such meta channel; the "
    "error names it",
    ErrorReply.ADVICE_INVALID: "`advice` is not an object",
    ErrorReply.EXT_INVALID: "`ext` is not an object, or one of its keys, such as `ack`, cannot "
    "be read, or is an ack of a session whose handshake did not ask for acks; the error names it",
    ErrorReply.HANDSHAKE_BATCHED: "The request also contains a handshake",
    ErrorReply.TEXT_INVALID: "A string in the message has half of a surrogate pair, for example "
    "from an emoji cut in two",
    ErrorReply.NUMBER_INVALID: "A number in the message is beyond the range of doubles, such as "
    "1e400",
    ErrorReply.LOGIN_DENIED: "The token that should renew the client's "
    "[login](../how-to/login.md) is "
    "invalid, or another subject's",
    ErrorReply.BACKEND_UNAVAILABLE: "The [backend](../how-to/backend.md), which decides about "
    "this, does not "
    "answer now, or not clearly; nothing was done, so try again later",
    ErrorReply.CREDENTIALS_IN_URL: "The message brings `ext.authentication` in a URL, by "
    "[callback-polling](callback-polling.md): use another transport, or log in with a cookie or a "
    "proxy",
    ErrorReply.MESSAGE_TOO_DEEP: "The message is nested deeper than `max_depth`",
    ErrorReply.REQUEST_MALFORMED: "The request is not JSON, not made of objects, or empty; the "
    "error says what is wrong and where, as in `400:not JSON at byte 17:request_malformed`; the "
    "first byte is 0, and the first message 1",
    ErrorReply.TRANSPORT_UNKNOWN: "No enabled transport accepts the request; "
    "[callback-polling](callback-polling.md) is off by default",
    ErrorReply.CALLBACK_INVALID: "The name of the JSONP callback is too long or invalid",
    ErrorReply.CLIENT_ID_MISSING: "The message has no `clientId`, which the reply to a handshake "
    "gives",
    ErrorReply.COOKIE_MISSING: "The request has no cookie `BAYEUX_BROWSER`, so it does not "
    "[show](sessions.md#identity) whose session it is for",
    ErrorReply.SESSION_TAKEN: "Another client has taken the [named session](named-sessions.md) "
    "over; the advice is not to come back. Only the client that had the session is told",
    ErrorReply.SESSION_UNKNOWN: "No such session, or it belongs to another browser. The reply to "
    "a connect advises a handshake, and so does the reply to a [new client](sessions.md#identity) "
    "whose socket opened too late",
    ErrorReply.HANDSHAKE_DENIED: "The [login](../how-to/login.md) failed, or the security policy "
    "or an "
    "extension denied the handshake; with `no_login`, the server has no login, and the token is no "
    "operator's",
    ErrorReply.CHANNEL_CREATE_DENIED: "The publish may not create the channel",
    ErrorReply.PUBLISH_DENIED: "A rule, the policy or an authorizer denied the publish",
    ErrorReply.CREATE_DENIED: "The subscription may not create the channel, or it names a pattern "
    "or an unknown channel below `/meta`",
    ErrorReply.SUBSCRIBE_DENIED: "A rule, the policy or an authorizer denied the subscription, or "
    "it names a meta channel that exists",
    ErrorReply.SUBSCRIPTION_MISSING: "The message has no `subscription`",
    ErrorReply.SUBSCRIPTION_INVALID: "`subscription` is neither a channel nor a non-empty array "
    "of channels",
    ErrorReply.UNSUBSCRIBE_FAILED: "The unsubscribe names a meta channel",
    ErrorReply.SESSION_NAME_DENIED: "The client may not use this session name",
    ErrorReply.SESSIONS_EXCEEDED: "The subject, or the `browser` or `address` that the error "
    "names, has the maximum number of named sessions",
    ErrorReply.ORIGIN_DENIED: "The page's origin is neither the server's own nor in the setting "
    "that the error names, `allow_origin`; if it names none, a "
    "[callback-polling](callback-polling.md#who-is-served) request does not show its page",
    ErrorReply.DESTINATION_DENIED: "The destination takes no [point-to-point](point-to-point.md) "
    "messages",
    ErrorReply.OFFSET_INVALID: "The `offset` of a [read](../how-to/streams.md) is empty, "
    "malformed or of the "
    "future, or a parameter is given twice",
    ErrorReply.HISTORY_MISSING: "The channel [keeps](replay.md) no messages",
    ErrorReply.TICKET_EXPIRED: "The [ticket](../how-to/streams.md#login-and-limits) in the URL "
    "has ended: "
    "get another one",
    ErrorReply.HISTORY_LOST: "Messages after the `offset` of the [read](../how-to/streams.md) "
    "have left the "
    "history, or the offset is of another store; `next` says where to go on",
    ErrorReply.READERS_EXCEEDED: "As many requests wait for messages as the setting that the error "
    "names allows, `max_readers` or `quota_readers`",
    ErrorReply.DESTINATION_UNKNOWN: "The [destination](point-to-point.md) is unknown, and the "
    "message may not wait for it",
    ErrorReply.DESTINATION_FULL: "The queue of the [destination](point-to-point.md) is full, or "
    "the server has no room for another queue or session",
    ErrorReply.MESSAGE_DELETED: "An extension dropped the message",
    ErrorReply.CHANNEL_INVALID: "`channel` is not a channel name, or the publish names a pattern",
    ErrorReply.MESSAGE_ID_INVALID: "`id` is neither letters and digits nor 1 to 255 printable "
    "ASCII characters, or a remote call has a longer one",
    ErrorReply.CONNECTION_TYPES_UNSUPPORTED: "The handshake names no connection type that the "
    "server supports",
    ErrorReply.REQUEST_TIMEOUT: "The request was not complete within `request_timeout`",
    ErrorReply.CONNECT_SUPERSEDED: "A newer connect of the session superseded this held connect",
    ErrorReply.ERASE_DENIED: "The client may not erase these [topics](topics.md)",
    ErrorReply.HISTORY_DENIED: "The client may not see what the channel [keeps](replay.md)",
    ErrorReply.REPLAY_DENIED: "The client may not begin in what the channel [keeps](replay.md)",
    ErrorReply.PRESENCE_DENIED: "The client may not see who is on the channel: "
    "[presence](presence.md)",
    ErrorReply.TOPIC_READONLY: "The topic is `readonly`, and has its only message",
    ErrorReply.MESSAGE_TOO_LARGE: "The message is larger than `max_message_size`",
    ErrorReply.REQUEST_TOO_LARGE: "The request exceeds `max_request_size` (inflated), `max_batch` "
    "or `max_values`",
    ErrorReply.SUBSCRIPTIONS_EXCEEDED: "The session would have more than `max_subscriptions` or, "
    "with `filter`, `max_session_filters`",
    ErrorReply.HOST_UNKNOWN: "The server does not serve the name in `Host`; see `host_name`",
    ErrorReply.MEDIA_TYPE_UNSUPPORTED: "The request is multipart, or has an unknown charset or "
    "content encoding",
    ErrorReply.SERVER_FAULT: "The server, or a policy, authorizer, service or extension, failed; "
    "the server's log has the cause. The reply to a handshake advises when to retry",
    ErrorReply.BUDGET_EXCEEDED: "The address or the subject has used up the "
    "[budget](limits.md#budgets) that the error names; the advice or `Retry-After` "
    "says when "
    "to retry",
    ErrorReply.WEBSOCKET_VERSION_UNSUPPORTED: "The upgrade asks for a version other than 13",
    ErrorReply.TRANSFER_CODING_UNSUPPORTED: "`Transfer-Encoding` is not `chunked` alone",
    ErrorReply.SUBSCRIPTIONS_USED_UP: "All sessions together would have more than "
    "`max_total_subscriptions`, or with `filter`, `max_filters`",
    ErrorReply.REQUEST_DENIED: "The client may not send [requests](requests.md) on this channel",
    ErrorReply.REPLY_DENIED: "The client may not [reply](requests.md#replies) here: it was not "
    "handed such a request; or `ext.replyTo` is not below its own channel",
    ErrorReply.NO_RESPONDERS: "Nobody can answer the [request](requests.md)",
    ErrorReply.TIMEOUT: "No reply to the [request](requests.md) came in time",
    ErrorReply.DUPLICATE_REPLY: "The request has its [reply](requests.md#replies) already",
    ErrorReply.LATE_REPLY: "The [reply](requests.md#replies) came after its request had ended, and "
    "became a dead letter",
    ErrorReply.RESPONDER_ERROR: "The last receiver of the [request](requests.md) refused it, with "
    "the code that the error names",
    ErrorReply.REQUESTS_EXCEEDED: "The session would have more than `max_outstanding` requests",
    ErrorReply.REQUESTS_USED_UP: "All sessions together would have more than "
    "`max_total_outstanding` requests",
    ErrorReply.TOPICS_USED_UP: "The publish would make one more topic than `max_topics`",
    ErrorReply.PUBLISHES_EXCEEDED: "Too many publishes of the session wait for the store",
    ErrorReply.CHANNEL_HELD_BACK: "The channel is held back, and the publish has `refuseHeld`",
    ErrorReply.STORE_UNAVAILABLE: "The store is unavailable or refused the message. With "
    "`unknown`, the message may or may not be stored",
    ErrorReply.SHARD_UNAVAILABLE: "Another shard did not answer in time, or is too far behind: "
    "try again",
    ErrorReply.SERVER_BUSY: "The server refused the handshake (rate, load, `max_sessions` or "
    "stopping); the advice says when to retry. As the status of a whole request: the server is "
    "overloaded or failed",
}


def settings() -> str:
    """The table of settings, by sections."""
    return "".join(
        f"\n## {section.heading}\n\n" + _table(("Setting", "Default", "Meaning"), _rows(section))
        for section in SECTIONS
    )


def channels() -> str:
    """The table of the settings of channels."""
    return _table(("Key", "Default", "Meaning"), _rows(ChannelSettings))


def webhooks() -> str:
    """The table of the settings of a webhook."""
    return _table(("Key", "Default", "Meaning"), _rows(WebhookSettings))


def backend() -> str:
    """The table of the settings of the backend."""
    return _table(("Key", "Default", "Meaning"), _rows(BackendSettings))


def often_set() -> str:
    """The settings that people set."""
    fields = Settings.model_fields
    rows = (_setting(name, fields[name]) for name in OFTEN_SET)
    return f"\n## {SET_OFTEN}\n\n" + _table(("Setting", "Default", "Meaning"), rows)


def alerts() -> str:
    """The table of alerts: the keys of their file."""
    return _table(("Key", "Default", "Meaning"), _rows(AlertLimits))


def _rows(section: type[BaseModel]) -> Iterator[str]:
    return (_setting(name, field) for name, field in section.model_fields.items())


def _setting(name: str, field: FieldInfo) -> str:
    return _row(f"`{name}`", _default(field), field.description or "")


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "must be set"
    value = field.get_default()
    if value is None:
        return "none"
    shown = orjson.dumps(value, default=str).decode()
    unit = unit_of(field.metadata)
    readable = unit and unit.readable(value)
    return f"`{shown}` ({readable})" if readable else f"`{shown}`"


def errors() -> str:
    """The table of errors in replies, by code."""
    rows = [
        _row(f"`{error.code}:…:{error.value[1]}`", MEANINGS[error])
        for error in sorted(ErrorReply, key=lambda error: error.code)
    ]
    return _table(("Error", "When"), rows)


def error_codes() -> str:
    """The table of error codes of failed deliveries and refused requests."""
    rows = [_row(f"`{code.text}`", code.meaning) for code in CODES.values()]
    return _table(("Code", "Meaning"), rows)


def metrics() -> str:
    """The table of the server's metrics; prometheus-client adds those of the process."""
    rows = []
    alone = BayeuxCollector(_silent_server(), _limits(), Alerts(), OwnStoreRight())
    one, other = {1: 0}, {1: 0.0}
    crossing = families_of(LogFigures(0, 0, 0, one, one, one, other))
    joint = [
        *door_families_of(DoorFigures(one, one, "a.example")),
        answering({1: True}),
        restarted(one),
    ]
    backend = backend_families(BackendFigures(""))
    for metric in chain(alone.collect(), backend, crossing, joint):
        suffix = "_total" if metric.type == "counter" else ""
        labels: dict[str, dict[str, None]] = {}
        for sample in metric.samples:
            for name, value in sample.labels.items():
                labels.setdefault(name, {})[value] = None
        # The bounds of buckets are in the text above the table.
        labels.pop("le", None)
        shown = ", ".join(f"`{name}`: {', '.join(values)}" for name, values in labels.items())
        rows.append(_row(f"`{metric.name}{suffix}`", metric.documentation, shown))
    return _table(("Metric", "Meaning", "Labels"), rows)


def requests() -> str:
    """The table of requests to the administration."""
    return _table(("Request", "What it does", "Takes"), starmap(_row, listing.requests()))


def commands() -> str:
    """The table of commands, with their options."""
    return _table(("Command", "What it does", "Options"), starmap(_row, listing.commands()))


def steps() -> str:
    return _table(
        ("Kind", "What happened"), (_row(f"`{step.kind}`", step.meaning) for step in STEPS)
    )


def leaving() -> str:
    rows = (_row(row.what, row.fate.value, row.why) for row in TABLE)
    return _table(("In memory", "What becomes of it", "How, and why it is harmless"), rows)


def console_steps() -> str:
    rows = [
        (
            step.kind,
            {
                "words": step.words,
                "mood": step.mood.value,
                "rank": len(STEPS) if step.is_end else rank,
                "stage": step.stage,
            },
        )
        for rank, step in enumerate(STEPS)
    ]
    return _script("STEPS", rows, "new Map([%s])")


def console_lists() -> str:
    rows = [
        {
            "name": each.name,
            "title": each.title,
            "things": each.things,
            "explanation": each.explanation,
            "columns": [{"name": name, "form": form} for name, form in each.columns.items()],
        }
        for each in LISTED
    ]
    return _script("LISTED", rows)


def _script(name: str, rows: Iterable[object], form: str = "[%s]") -> str:
    """Return a constant in JavaScript, up to the beginning of the next comment."""
    lines = "".join(f"    {orjson.dumps(row).decode()},\n" for row in rows)
    value = form % f"\n{lines}"
    return f"export const {name} = {value};\n// "


def _limits() -> dict[str, ConnectionLimit]:
    return {"main": ConnectionLimit(1), "admin": ConnectionLimit(1)}


def _silent_server() -> Bayeux:
    return assemble(
        Settings(),
        node=Node("docs", int, "docs"),
        store=Mock(spec=StorePort, letter_quota=LetterQuota()),
        epoch="",
        journal=JournalWriter("docs", Mock(), now=0.0, now_ns=int),
        client_ids=ClientIds(b"", bytes),
        random=float,
        on_ready=lambda: None,
        run_later=lambda work, done: None,
        is_turn_over=lambda: False,
        unread_since=float,
        role_of=str,
    )


def _table(titles: Sequence[str], rows: Iterable[str]) -> str:
    return "\n".join([*_head(*titles), *rows]) + "\n"


def _head(*titles: str) -> list[str]:
    return [_row(*titles), _row(*["---"] * len(titles))]


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


TABLES = {
    "settings that people set": (DOCS / "reference" / "settings.md", often_set),
    "settings": (DOCS / "reference" / "settings.md", settings),
    "channels": (DOCS / "reference" / "settings.md", channels),
    "webhooks": (DOCS / "how-to" / "webhooks.md", webhooks),
    "backend": (DOCS / "how-to" / "backend.md", backend),
    "errors": (DOCS / "reference" / "protocol.md", errors),
    "error codes": (DOCS / "reference" / "error-codes.md", error_codes),
    "metrics": (DOCS / "reference" / "metrics.md", metrics),
    "alerts": (DOCS / "how-to" / "monitoring.md", alerts),
    "steps": (DOCS / "reference" / "tables.md", steps),
    "requests": (DOCS / "reference" / "administration.md", requests),
    "commands": (DOCS / "reference" / "command-line.md", commands),
    "leaving": (DOCS / "building" / "succession.md", leaving),
    "console steps": (CONSOLE / "steps.js", console_steps),
    "console lists": (CONSOLE / "listed.js", console_lists),
}


def renewed(name: str) -> tuple[Path, str]:
    """Return a page and its text with the table generated anew."""
    page, make = TABLES[name]
    return page, replaced(page.read_text("utf-8"), f"docs.generate: {name}", make())


def replaced(text: str, maker: str, made: str) -> str:
    """Return the text with new content between the two comments of this maker."""
    marked = re.compile(rf"(<!-- made by {re.escape(maker)} -->\n).*?(<!-- end -->)", re.DOTALL)
    text, count = marked.subn(lambda found: found[1] + made + found[2], text)
    if count != 1:
        raise ValueError(f"there must be exactly one place made by {maker}")
    return text


def main() -> None:
    for name in TABLES:
        page, text = renewed(name)
        page.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
