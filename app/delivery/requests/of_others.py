"""Requests of other shards, as the shard of a receiver knows them."""

from typing import Any, Final, Generic, NamedTuple, TypeVar

from orjson import loads

from holdfast.delivery.basics.feature_records import record_of, with_record
from holdfast.delivery.basics.json_text import to_json
from holdfast.delivery.messages.message import Message, MessageRecord
from holdfast.delivery.messages.storing import RequestFields
from holdfast.delivery.queues.receivers import Receiver
from holdfast.delivery.requests.request import ReplyMode, Request, RequestBook, request_of
from holdfast.delivery.requests.stored_fields import REPLIED, spoken

R = TypeVar("R", bound=Receiver)

# What the stored fields of these requests begin with.
_PREFIX: Final = "~"


class Asked(NamedTuple):
    """What crosses with the message of a request."""

    # The channel that responders publish to.
    address: str
    mode: str
    timeout_ms: int
    deadline_ms: int


class AskedElsewhere(MessageRecord):
    """The record of a message that is a request of another shard."""

    __slots__ = ("asked",)

    def __init__(self, asked: Asked) -> None:
        self.asked = asked

    def mark(self, message: Message) -> None:
        """Let the message be such a request."""
        message.records = with_record(message.records, self)


def asked_elsewhere(message: Message) -> Asked | None:
    """Return the request of another shard that the message is, if it is one."""
    record = record_of(message.records, AskedElsewhere)
    return None if record is None else record.asked


def asked_by(message: Message) -> Asked | None:
    """Return what other shards need to know of the request that the message is, if it is one."""
    request = request_of(message)
    if request is None:
        return None
    return Asked(request.address, request.mode.value, request.timeout_ms, request.deadline_ms)


class FarRequest(Request[R], Generic[R]):
    """A request of another shard, and the sessions of this one that may answer it."""

    __slots__ = ("is_told", "shard")

    def __init__(
        self,
        book: RequestBook,
        nobody: R,
        asked: Asked,
        *,
        channel: str,
        shard: int,
        now: float,
        now_ms: int,
    ) -> None:
        super().__init__(
            book,
            # The requester is not here.
            nobody,
            channel=channel,
            reply_to=asked.address,
            mode=ReplyMode(asked.mode),
            timeout_ms=asked.timeout_ms,
            now=now,
            now_ms=now_ms,
        )
        self.ends_at = now + max(asked.deadline_ms - now_ms, 0) / 1000
        self.deadline_ms = asked.deadline_ms
        # The shard that asks, and whether it knows who may answer.
        self.shard = shard
        self.is_told = False


def field_of(request: FarRequest[Any]) -> RequestFields:
    """Return the field of the request: who may answer it.

    Who has replied is among them: the shard of the requester knows which replies count.
    """
    replied = [key for key, said in request.spoken.items() if said == REPLIED]
    asked = Asked(request.address, request.mode.value, request.timeout_ms, request.deadline_ms)
    responders = [*request.responders, *replied]
    return fields_of(Kept(asked, request.channel, request.id, responders, {}, request.is_work))


def spoken_fields(request: FarRequest[Any], said: dict[str, bytes]) -> RequestFields:
    """Return the fields of responders, with what each said."""
    return {_PREFIX + name: what for name, what in spoken(request, said).items()}


def removal_of(request: FarRequest[Any]) -> RequestFields:
    """Return the removal of all fields of the request."""
    fields = {**field_of(request), **spoken_fields(request, request.spoken)}
    return dict.fromkeys(fields, b"")


class Kept(NamedTuple):
    """A request of another shard, as the store has it."""

    asked: Asked
    channel: str
    id: int
    responders: list[str]
    said: dict[str, bytes]
    is_work: bool


def fields_of(kept: Kept) -> RequestFields:
    """Return the fields of a request as the store has it, with what responders have said."""
    asked = kept.asked
    record = {
        "channel": kept.channel,
        "deadline_ms": asked.deadline_ms,
        "id": kept.id,
        "is_work": kept.is_work,
        "mode": asked.mode,
        "responders": sorted(kept.responders),
        "timeout_ms": asked.timeout_ms,
    }
    name = _PREFIX + asked.address
    return {name: to_json(record), **{f"{name} {key}": said for key, said in kept.said.items()}}


def is_of_others(field: str) -> bool:
    """Return whether a stored field belongs to a request of another shard."""
    return field.startswith(_PREFIX)


def kept_in(fields: RequestFields) -> dict[str, Kept | None]:
    """Return the requests in such fields, by address; None for those that are unreadable."""
    found: dict[str, Kept | None] = {}
    said: dict[str, dict[str, bytes]] = {}
    for name, value in fields.items():
        address, _, key = name.removeprefix(_PREFIX).partition(" ")
        if key:
            said.setdefault(address, {})[key] = value
        else:
            found[address] = _kept(address, value)
    for address, by_key in said.items():
        kept = found.setdefault(address, None)
        if kept is not None:
            kept.said.update(by_key)
    return found


def _kept(address: str, value: bytes) -> Kept | None:
    try:
        record = loads(value)
        asked = Asked(address, record["mode"], record["timeout_ms"], record["deadline_ms"])
        ReplyMode(asked.mode)
        is_work = record.get("is_work", False)
        return Kept(asked, record["channel"], record["id"], record["responders"], {}, is_work)
    except (LookupError, TypeError, ValueError):
        return None
