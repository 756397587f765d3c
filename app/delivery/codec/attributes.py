"""What a message has, and what of it travels on which way.

Whatever carries a message has its bytes, id, channel and publisher beside each other. All else is
an object with the attributes that are not as usual, by the keys of this table. The keys that the
store has are short: there may be millions. They never change. What stands beside has the keys `v`,
`c`, `s`, `id` and `number`.

What a process leaves to the next one follows from this table, too. Only `Message` says what copies
have: records say it themselves, fields stand in `_copy`, `for_other_queues` and `initial`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, Final, NamedTuple

from holdfast.delivery.basics.error_codes import UPDATE_ERROR, find
from holdfast.delivery.basics.json_text import part
from holdfast.delivery.letters.exempt import leave_no_letter, leaves_no_letter
from holdfast.delivery.messages.crossing import Spared, spared_by
from holdfast.delivery.messages.former_attempts import FormerAttempts, former_of
from holdfast.delivery.messages.keeping import Keeping
from holdfast.delivery.messages.message import ORDINARY_PRIORITY, Message
from holdfast.delivery.messages.publish_key import PublishKey, publish_key_of
from holdfast.delivery.messages.trails import Attempt
from holdfast.delivery.requests.of_others import Asked, AskedElsewhere, asked_by
from holdfast.delivery.shared_queues.work import WorkRefusal, is_work, make_work, refusals_of


class Way(Enum):
    """A way on which a message travels."""

    # To the store and back.
    STORE = "store"
    # To the next process, with its queues.
    HAND_OVER = "hand-over"
    # In the log of its shard, to all others.
    FRAME = "frame"
    # To the shard of those that it is addressed to. A home gets the event and the options of the
    # publish instead, and makes the message: see `bayeux/publish/home_call.py`.
    CALL = "call"
    # To a shard whose session does the work.
    LOAN = "loan"
    # From a history, to the shard of a later subscriber.
    HISTORY = "history"


class Scope(Enum):
    """To what an attribute belongs."""

    # The message, wherever it is.
    MESSAGE = "message"
    # The copy for one receiver.
    COPY = "copy"
    # One step of its way.
    HOP = "hop"


_EVERY_WAY: Final = tuple(Way)


class Attribute(NamedTuple):
    """An attribute that travels."""

    # The field of the message, or the class of a record.
    name: str
    key: str
    scope: Scope
    ways: tuple[Way, ...]
    # Returns its value; None if it is as usual.
    value: Callable[[Message], Any]
    # Gives it to a message that has arrived. Those before it in the table are there already.
    put: Callable[[Message, Any], None]


def attributes_of(message: Message, way: Way) -> dict[str, Any]:
    """Return the attributes of a message that travel on this way. orjson may encode them."""
    found: dict[str, Any] = {}
    for attribute in _OF_FIELDS[way]:
        value = attribute.value(message)
        if value is not None:
            found[attribute.key] = value
    if message.records is not None:
        for attribute in _OF_RECORDS[way]:
            value = attribute.value(message)
            if value is not None:
                found[attribute.key] = value
    return found


def put_attributes(message: Message, found: Mapping[str, Any]) -> None:
    """Undo `attributes_of`; other keys are passed over.

    Raises `ValueError`, `LookupError`, `TypeError` or `AttributeError` for another form.
    """
    for key, value in found.items():
        attribute = _BY_KEY.get(key)
        if attribute is not None:
            attribute.put(message, value)


# Fields


def _field(name: str, usual: object) -> tuple[Callable[[Message], Any], Callable[..., None]]:
    """Return how to read a field, which is None if it is as usual, and how to give it."""

    def read(message: Message) -> Any:  # noqa: ANN401 - whatever the field has
        found = getattr(message, name)
        return None if found == usual else found

    def put(message: Message, value: object) -> None:
        setattr(message, name, value)

    return read, put


def _is_forced(message: Message) -> bool | None:
    return True if message.expires_ms else None


def _put_forced(message: Message, value: bool) -> None:
    message.expires_ms = message.end_of_life_ms() if value else 0


def _end(message: Message) -> int | None:
    is_usual = not message.expires_ms or message.expires_ms == message.end_of_life_ms()
    return None if is_usual else message.expires_ms


def _put_end(message: Message, value: int) -> None:
    message.expires_ms = value


def _properties(message: Message) -> Any:  # noqa: ANN401 - whatever the publisher said
    properties = message.properties
    return None if properties is None else part(dict(properties))


def _put_properties(message: Message, value: Mapping[str, Any]) -> None:
    message.properties = value


def _addressed(message: Message) -> list[str] | None:
    return [*message.addressed] if message.addressed else None


def _put_addressed(message: Message, value: list[str]) -> None:
    message.addressed = tuple(value)


def _keeping(message: Message) -> list[Any] | None:
    return None if message.keeping is None else message.keeping.to_row()


def _put_keeping(message: Message, value: list[Any]) -> None:
    message.keeping = Keeping.of_row(value)


# Records of features


def _is_exempt(message: Message) -> bool | None:
    return leaves_no_letter(message) or None


def _put_exempt(message: Message, value: bool) -> None:
    if value:
        leave_no_letter(message)


def _is_work(message: Message) -> bool | None:
    return is_work(message) or None


def _put_work(message: Message, value: bool) -> None:
    if value:
        # After a restart, receivers that refused it may get it again.
        make_work(message)


def rows_of_refusals(message: Message) -> list[list[Any]]:
    """Return who has refused a message of a work queue, as other shards are told."""
    return [[each.key, each.code.text, each.text, each.is_final] for each in refusals_of(message)]


def refusals_in(rows: Iterable[Sequence[Any]]) -> list[WorkRefusal]:
    """Undo `rows_of_refusals`."""
    return [
        WorkRefusal(key, find(code) or UPDATE_ERROR, text, is_final)
        for key, code, text, is_final in rows
    ]


def _refusals(message: Message) -> list[list[Any]] | None:
    return rows_of_refusals(message) if is_work(message) else None


def _put_refusals(message: Message, value: list[list[Any]]) -> None:
    make_work(message, refusals_in(value))


def row_of_attempts(message: Message) -> list[Any] | None:
    """Return what was attempted before in other queues, as other shards are told, or None."""
    former = former_of(message)
    if former is None:
        return None
    trail = [each.to_json() for each in former.trail]
    return [former.attempts, former.redelivered, trail, former.was_alone]


def attempts_in(row: Sequence[Any]) -> FormerAttempts:
    """Undo `row_of_attempts`."""
    count, redelivered, trail, was_alone = row
    return FormerAttempts(count, redelivered, tuple(Attempt(**each) for each in trail), was_alone)


def _attempts(message: Message) -> Any:  # noqa: ANN401 - prepared for orjson
    return part(row_of_attempts(message))


def _put_attempts(message: Message, value: list[Any]) -> None:
    attempts_in(value).mark(message)


def _spared(message: Message) -> list[str] | None:
    return sorted(spared_by(message)) or None


def _put_spared(message: Message, value: list[str]) -> None:
    Spared(value).mark(message)


def _asked(message: Message) -> list[Any] | None:
    asked = asked_by(message)
    return None if asked is None else [*asked]


def _put_asked(message: Message, value: list[Any]) -> None:
    AskedElsewhere(Asked(*value)).mark(message)


def _key(message: Message) -> str | None:
    key = publish_key_of(message)
    return None if key is None else key.digest


def _put_key(message: Message, value: str) -> None:
    PublishKey(value).identify(message)


FIELDS: Final = (
    Attribute("priority", "p", Scope.MESSAGE, _EVERY_WAY, *_field("priority", ORDINARY_PRIORITY)),
    Attribute("life_ms", "l", Scope.MESSAGE, _EVERY_WAY, *_field("life_ms", None)),
    Attribute("expires_ms", "f", Scope.MESSAGE, _EVERY_WAY, _is_forced, _put_forced),
    # Forced at another time than its lifetime says.
    Attribute("expires_ms", "e", Scope.MESSAGE, _EVERY_WAY, _end, _put_end),
    Attribute("linger_s", "w", Scope.MESSAGE, _EVERY_WAY, *_field("linger_s", None)),
    Attribute("properties", "x", Scope.MESSAGE, _EVERY_WAY, _properties, _put_properties),
    Attribute("is_direct", "o", Scope.MESSAGE, _EVERY_WAY, *_field("is_direct", False)),
    Attribute("addressed", "a", Scope.MESSAGE, _EVERY_WAY, _addressed, _put_addressed),
    # Entries of queues say it to the store, because copies of one message differ.
    Attribute(
        "generation",
        "generation",
        Scope.COPY,
        (Way.HAND_OVER, Way.LOAN),
        *_field("generation", 0),
    ),
    Attribute("is_initial", "initial", Scope.COPY, (Way.HAND_OVER,), *_field("is_initial", False)),
    Attribute("is_late", "late", Scope.HOP, (Way.HAND_OVER,), *_field("is_late", False)),
    # A frame says it of each receiver, and all that is stored is durable.
    Attribute(
        "is_durable",
        "durable",
        Scope.HOP,
        (Way.HAND_OVER, Way.HISTORY),
        *_field("is_durable", False),
    ),
    Attribute("keeping", "keeping", Scope.HOP, (Way.HAND_OVER,), _keeping, _put_keeping),
)
OF_RECORDS: Final = (
    Attribute("_NoLetter", "d", Scope.MESSAGE, _EVERY_WAY, _is_exempt, _put_exempt),
    # A queue belongs to one shard: others know its messages only as loans.
    Attribute("_Work", "q", Scope.MESSAGE, (Way.STORE, Way.HAND_OVER), _is_work, _put_work),
    Attribute("_Work", "refusals", Scope.HOP, (Way.LOAN,), _refusals, _put_refusals),
    Attribute("FormerAttempts", "attempts", Scope.COPY, (Way.LOAN,), _attempts, _put_attempts),
    Attribute("Spared", "spared", Scope.HOP, (Way.FRAME,), _spared, _put_spared),
    Attribute(
        "AskedElsewhere", "asked", Scope.HOP, (Way.FRAME, Way.CALL, Way.LOAN), _asked, _put_asked
    ),
    Attribute("PublishKey", "publishKey", Scope.HOP, (Way.CALL,), _key, _put_key),
)
_OF_FIELDS: Final = {way: [each for each in FIELDS if way in each.ways] for way in Way}
_OF_RECORDS: Final = {way: [each for each in OF_RECORDS if way in each.ways] for way in Way}
_BY_KEY: Final = {each.key: each for each in (*FIELDS, *OF_RECORDS)}

# Every carrier has these beside the attributes; the channel tells the topic that counts.
BESIDE: Final = frozenset({"wire", "id", "channel", "sender"})
# These are found out wherever the message is, or belong to the process in which it is.
FOUND_OUT: Final = frozenset(
    {
        *("frame", "event_start", "journal_note", "records"),
        *("Borrowed", "Crossing", "Effect", "OfTopic", "RequestOf"),
    }
)
