"""A request: who sent it, who may answer it, and how it ended."""

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

from holdfast.delivery.basics.feature_records import record_of, with_record
from holdfast.delivery.basics.timers import Timed
from holdfast.delivery.messages.message import MessageRecord, ReceiverView
from holdfast.delivery.messages.storing import RequestFields
from holdfast.delivery.queues.receivers import Receiver
from holdfast.delivery.requests.responders import may_answer

if TYPE_CHECKING:
    from holdfast.delivery.messages.message import Message

R = TypeVar("R", bound=Receiver)
K = TypeVar("K")

# A request that is remembered counts as several session names, because it may be the last object
# that keeps an ended session in memory.
_OF_REQUEST: Final = 4
# How many digits the remaining time takes in an event, so that it can be updated in place.
_WIDTH: Final = 10


class ReplyMode(Enum):
    """Which receivers are to answer a request."""

    # The first reply counts.
    FIRST = "first"
    # Each responder replies.
    ALL = "all"
    # One receiver is asked.
    ONE = "one"


class RequestEnd(Enum):
    """How a request ended. The journal and the metrics use these values."""

    # Enum's own hash is slow Python code, and counters use these as keys.
    __hash__ = object.__hash__

    ANSWERED = "answered"
    NO_RESPONDERS = "no_responders"
    TIMEOUT = "timeout"
    REFUSED = "refused"
    # The requester's session ended.
    ABANDONED = "abandoned"
    # The request was never published.
    UNSENT = "unsent"


class ReplyFault(Enum):
    """Why a reply is refused. The journal and the metrics use these values."""

    __hash__ = object.__hash__

    # The session may not answer the request, or the request does not exist.
    DENIED = "denied"
    DUPLICATE = "duplicate"
    LATE = "late"


class RequestBook(Protocol):
    """All requests, from the point of view of one of them."""

    def keep(self, request: "Request[Any]", keys: Iterable[str], /) -> RequestFields: ...

    def grant(self, request: "Request[Any]", keys: Iterable[str], /) -> None: ...

    def lose(
        self, request: "Request[Any]", key: str, refusal: tuple[str, str] | None, /
    ) -> None: ...

    def crossed(self, request: "Request[Any]", /) -> None: ...


class Request(Timed, Generic[R]):
    """One request, outstanding or ended, of a session here or in another shard.

    If it is of another shard, `requester` only stands for its session.
    """

    __slots__ = (
        "_place",
        "address",
        "arriving",
        "call",
        "carried",
        "channel",
        "counted",
        "deadline_ms",
        "end",
        "ends_at",
        "id",
        "is_kept",
        "is_lasting",
        "is_leaving",
        "is_told",
        "is_work",
        "mode",
        "refusal",
        "replies",
        "reply_to",
        "requester",
        "requests",
        "responders",
        "shard",
        "spoken",
        "timeout_ms",
        "unheard",
    )

    def __init__(
        self,
        requests: RequestBook,
        requester: R,
        *,
        channel: str,
        reply_to: str,
        mode: ReplyMode,
        timeout_ms: int,
        now: float,
        now_ms: int,
    ) -> None:
        super().__init__()
        self.requests = requests
        self.requester = requester
        self.channel = channel
        # The channel on which the requester gets replies, and the channel that responders publish
        # to.
        self.reply_to = self.address = reply_to
        self.mode = mode
        self.timeout_ms = timeout_ms
        self.ends_at = now + timeout_ms / 1000
        self.deadline_ms = now_ms + timeout_ms
        # The channel and id of the remote call that it represents.
        self.call: tuple[str, str] | None = None
        # The id of its message.
        self.id = 0
        # Whether it is on a work queue, which has one copy of it.
        self.is_work = False
        # Names of sessions that may still reply, and of sessions that will not, with what they
        # said: see `stored_fields`.
        self.responders: set[str] = set()
        self.spoken: dict[str, bytes] = {}
        # Shards that have not said which of their sessions may reply.
        self.unheard: Collection[int] = ()
        # With what the next process asks one session of another shard, if this one was killed
        # before any shard had heard of the request.
        self.carried = b""
        # The shard of the requester, or None if it is this one; how often this shard counts it.
        self.shard: int | None = None
        self.counted = 1
        # If it is another one: whether that knows who may answer, and whether the message is stored
        # here.
        self.is_told = self.is_lasting = False
        # Whether the store has it.
        self.is_kept = False
        # Whether a message that removes it there is being stored.
        self.is_leaving = False
        # Accepted replies, and replies that are being stored.
        self.replies = self.arriving = 0
        # The code and text of the last refusal.
        self.refusal: tuple[str, str] | None = None
        # None while it is outstanding.
        self.end: RequestEnd | None = None
        # The offset of the remaining time in the event; negative if there is none.
        self._place = -1

    @property
    def is_durable(self) -> bool:
        """Whether the store is to have it."""
        return self.is_lasting if self.shard is not None else self.requester.is_durable

    def go_on(self, deadline_ms: int, now: float, now_ms: int) -> None:
        """Let it have the deadline that it was sent with."""
        self.deadline_ms = deadline_ms
        self.ends_at = now + max(deadline_ms - now_ms, 0) / 1000

    def belong_to(self, shard: int) -> None:
        """Let another shard decide which replies count, and when it is over."""
        self.shard, self.unheard, self.counted = shard, (shard,), 0

    # Its message

    def enter(self, message: "Message") -> None:
        """Attach the request to this message."""
        self.id = message.id
        self._attach_to(message)
        # Later subscribers have no use for it.
        message.keeping = None
        if message.life_ms is None or message.life_ms > self.timeout_ms:
            message.limit_life(self.timeout_ms, is_forced=True)
        self._find_place(message)
        if self._place >= 0:
            end = self._place + len(b"%d" % self.timeout_ms)
            message.wire = self._saying(message.wire, self.timeout_ms, end)

    def enter_again(self, message: "Message") -> None:
        """Attach the request to its message, which an earlier process published."""
        self._attach_to(message)
        self._find_place(message)

    def _attach_to(self, message: "Message") -> None:
        message.records = with_record(message.records, RequestOf(self))

    def _find_place(self, message: "Message") -> None:
        said = b'"replyTo":"%b","timeout":' % self.address.encode()
        # The last occurrence: the data may contain the same text.
        begin = message.wire.rfind(said)
        if begin >= 0:
            self._place = begin + len(said)

    def with_time_left(self, wire: bytes, now_ms: int) -> bytes:
        """Return the event with the time left until the deadline."""
        place = self._place
        left_ms = max(self.deadline_ms - now_ms, 0)
        if place < 0 or int(wire[place : place + _WIDTH]) == left_ms:
            return wire
        return self._saying(wire, left_ms, place + _WIDTH)

    def _saying(self, wire: bytes, left_ms: int, end: int) -> bytes:
        # Padded, because queues have counted its bytes.
        return b"%b%*d%b" % (wire[: self._place], _WIDTH, left_ms, wire[end:])


class RequestOf(MessageRecord):
    """The record of a message that is a request: its receivers may answer or will not."""

    __slots__ = ("request",)

    def __init__(self, request: Request[Any]) -> None:
        self.request = request

    def fields_for(self, message: "Message", receivers: Sequence[ReceiverView]) -> RequestFields:
        return self.request.requests.keep(self.request, _responders(message, receivers))

    def shown_to(self, message: "Message", receivers: Sequence[ReceiverView]) -> None:
        self.request.requests.grant(self.request, _responders(message, receivers))

    def refused_by(self, key: str, code: str, text: str) -> None:
        self.request.requests.lose(self.request, key, (code, text))

    def unanswered_by(self, key: str) -> None:
        self.request.requests.lose(self.request, key, None)

    def crossed(self) -> None:
        self.request.requests.crossed(self.request)


def fault_of_reply(request: Request[Any]) -> ReplyFault | None:
    """Return the fault of a first reply from a session that may answer, if any."""
    if request.shard is not None:
        # That one knows.
        return None
    if request.end is None:
        # Another session may have been first even though the store does not have its reply yet.
        is_taken = request.arriving and request.mode is not ReplyMode.ALL
        return ReplyFault.DUPLICATE if is_taken else None
    is_taken = request.end is RequestEnd.ANSWERED and request.mode is not ReplyMode.ALL
    return ReplyFault.DUPLICATE if is_taken else ReplyFault.LATE


class Remembered(Generic[R]):
    """Ended requests with the times at which they ended, oldest first.

    Args:
        most: How much they may remember. A session name counts as one.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._ended: deque[tuple[float, Request[R]]] = deque()
        # The number of session names that they remember.
        self._weight = 0

    def add(self, request: Request[R], now: float) -> Iterator[Request[R]]:
        """Remember a request. Returns those that are forgotten for it."""
        self._ended.append((now, request))
        self._weight += _weight(request)
        return self._over()

    def _over(self) -> Iterator[Request[R]]:
        while self._weight > self.most:
            yield self._oldest()

    def before(self, time: float, most: int) -> Iterator[Request[R]]:
        """Forget requests that ended before this time, at most so many."""
        for _ in range(most):
            if not self._ended or self._ended[0][0] >= time:
                break
            yield self._oldest()

    def _oldest(self) -> Request[R]:
        _, oldest = self._ended.popleft()
        self._weight -= _weight(oldest)
        return oldest


def _weight(request: Request[Any]) -> int:
    return _OF_REQUEST + len(request.responders) + len(request.spoken)


def request_of(message: "Message") -> Request[Any] | None:
    """Return the request that the message is, if it is one."""
    record = record_of(message.records, RequestOf)
    return None if record is None else record.request


def _responders(message: "Message", receivers: Sequence[ReceiverView]) -> list[str]:
    """Return the names of the receivers that may answer the request."""
    return [each.key for each in receivers if may_answer(each, message)]


def remove_from(index: "dict[K, dict[Request[R], None]]", key: K, request: Request[R]) -> bool:
    """Remove the request from an index. Returns whether it was there."""
    requests = index.get(key)
    if requests is None or request not in requests:
        return False
    del requests[request]
    if not requests:
        del index[key]
    return True
