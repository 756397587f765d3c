"""Requests: messages that their receivers may answer, and the answers.

A request is *outstanding* until it ends. Whoever was handed it may answer it once. Ended requests
are remembered for a while, to say what is wrong with a reply that comes too late.
"""

from collections import Counter, deque
from collections.abc import Callable, Container, Iterable
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from holdfast.delivery.delivery_journal import NO_JOURNAL, DeliveryJournal
from holdfast.delivery.receivers import Receiver
from holdfast.delivery.request_states import ReplyFault, ReplyMode, RequestEnd
from holdfast.delivery.timed import Timed
from holdfast.delivery.timers import Timers

if TYPE_CHECKING:
    from holdfast.delivery.messages import Message

R = TypeVar("R", bound=Receiver)
K = TypeVar("K")

# How much ended requests remember: a session name counts as one; a request itself as several,
# because it may be the last that keeps an ended session in memory.
_MOST_REMEMBERED: Final = 100_000
_OF_REQUEST: Final = 4
# The most requests that end at their deadline in one tick, about 3 us each.
_MOST_DUE: Final = 2000
# The digits that the rest of a deadline takes in an event: it is written again in place.
_WIDTH: Final = 10
# How long a request that is about to end waits for the store to keep its reply.
_REPLY_GRACE_S: Final = 0.1


class Request(Timed, Generic[R]):
    """One request, outstanding or ended."""

    __slots__ = (
        "_place",
        "_requests",
        "address",
        "arriving",
        "call",
        "channel",
        "deadline_ms",
        "end",
        "ends_at",
        "id",
        "is_work",
        "mode",
        "refusal",
        "replies",
        "reply_to",
        "requester",
        "responders",
        "spoken",
        "timeout_ms",
    )

    def __init__(
        self,
        requests: "Requests[R]",
        requester: R,
        channel: str,
        reply_to: str,
        mode: ReplyMode,
        timeout_ms: int,
        *,
        now: float,
        now_ms: int,
    ) -> None:
        super().__init__()
        self._requests = requests
        self.requester = requester
        self.channel = channel
        # The channel on which its requester gets replies, and the one that responders publish to.
        self.reply_to = self.address = reply_to
        self.mode = mode
        self.timeout_ms = timeout_ms
        self.ends_at = now + timeout_ms / 1000
        self.deadline_ms = now_ms + timeout_ms
        # The channel and id of the remote call that it stands for.
        self.call: tuple[str, str] | None = None
        # The id of its message.
        self.id = 0
        # Whether it is on a work queue, which has one copy of it.
        self.is_work = False
        # The session names of responders that may still reply, and of those that have replied or
        # refused.
        self.responders: set[str] = set()
        self.spoken: set[str] = set()
        # Accepted replies, and replies that the store is asked to keep.
        self.replies = self.arriving = 0
        # The code and text of the last refusal.
        self.refusal: tuple[str, str] | None = None
        # None while it is outstanding.
        self.end: RequestEnd | None = None
        # The place in its event at which the time left stands; negative if nowhere.
        self._place = -1

    # Its message

    def enter(self, message: "Message") -> None:
        """Let this message carry the request."""
        self.id = message.id
        message.request = self
        # Later subscribers have no use for it.
        message.depth = None
        if message.life_ms is None or message.life_ms > self.timeout_ms:
            message.limit_life(self.timeout_ms, is_forced=True)
        self._find_place(message)
        if self._place >= 0:
            end = self._place + len(b"%d" % self.timeout_ms)
            message.wire = self._saying(message.wire, self.timeout_ms, end)

    def enter_again(self, message: "Message") -> None:
        """Let its message, which an earlier process has published, carry the request."""
        message.request = self
        self._find_place(message)

    def _find_place(self, message: "Message") -> None:
        said = b'"replyTo":"%b","timeout":' % self.address.encode()
        # The last one: the data may say the same.
        begin = message.wire.rfind(said)
        if begin >= 0:
            self._place = begin + len(said)

    def with_time_left(self, wire: bytes, now_ms: int) -> bytes:
        """Return the event with the time that is left until its deadline."""
        place = self._place
        left_ms = max(self.deadline_ms - now_ms, 0)
        if place < 0 or int(wire[place : place + _WIDTH]) == left_ms:
            return wire
        return self._saying(wire, left_ms, place + _WIDTH)

    def _saying(self, wire: bytes, left_ms: int, end: int) -> bytes:
        # Padded, because queues have counted its bytes.
        return b"%b%*d%b" % (wire[: self._place], _WIDTH, left_ms, wire[end:])

    # Its responders

    def granted_to(self, keys: Iterable[str]) -> None:
        """Let the sessions with these names answer, which have a copy or will get one."""
        self._requests.grant(self, keys)

    def lost(self, key: str, code: str, text: str) -> None:
        """Note that this session has refused its copy, or will not get it."""
        self._requests.lose(self, key, code, text)


def _ignore(_: object) -> None:
    """Ignore what nobody waits for."""


class Requests(Generic[R]):
    """All requests of this server, by the channels that their responders publish to.

    Args:
        begin: Does the given work from the end of this turn on, until it returns False.
    """

    def __init__(
        self,
        journal: DeliveryJournal = NO_JOURNAL,
        begin: Callable[[Callable[[float], bool]], None] = _ignore,
    ) -> None:
        self._journal = journal
        self._begin = begin
        self._is_awake = False
        # Called with an ended request whose requester is to be told.
        self.notify: Callable[[Request[R]], None] = _ignore
        # Called with a request that was handed out, answered or ended, so that it can be kept.
        self.changed: Callable[[Request[R]], None] = _ignore
        # Whether clients may ask for replies.
        self.is_offered = False
        self._by_address: dict[str, Request[R]] = {}
        self._of_requester: dict[R, set[Request[R]]] = {}
        self._of_responder: dict[str, set[Request[R]]] = {}
        self._timers: Timers[Request[R]] = Timers()
        # Ended requests whose requesters are to be notified; and requests with a responder that has
        # ended.
        self._to_notify: deque[Request[R]] = deque()
        self._left: deque[tuple[Request[R], str]] = deque()
        # Ended requests in the order of their ends, and how many session names these remember.
        self._ended: deque[Request[R]] = deque()
        self._remembered = 0
        self.most_remembered = _MOST_REMEMBERED
        # Requests of this process, and those of an earlier one that continue.
        self.outstanding = self.asked = self.restored = 0
        # The session names that outstanding requests have.
        self.grants = 0
        self.ended: Counter[RequestEnd] = Counter()
        self.replies = 0
        self.refused: Counter[ReplyFault] = Counter()

    def count_of(self, requester: R) -> int:
        """Return how many requests of the session are outstanding."""
        return len(self._of_requester.get(requester, ()))

    # Asking

    def open(self, request: Request[R]) -> None:
        """Note a request that is being asked; `grant` follows."""
        self._enter(request)
        self.asked += 1
        self._journal.asked(request.requester, request.channel, request.timeout_ms)

    def reopen(self, request: Request[R], keys: Iterable[str]) -> None:
        """Go on with a request of an earlier process, which these sessions may answer."""
        self._enter(request)
        self.restored += 1
        self.grant(request, keys)

    def by_message(self) -> dict[int, Request[R]]:
        """Return the outstanding requests by the ids of their messages."""
        return {each.id: each for asked in self._of_requester.values() for each in asked}

    def _enter(self, request: Request[R]) -> None:
        self._by_address[request.address] = request
        self._of_requester.setdefault(request.requester, set()).add(request)
        self._timers.ring_by(request, request.ends_at)
        self.outstanding += 1

    def grant(self, request: Request[R], keys: Iterable[str]) -> None:
        """Let the sessions with these names answer, if the request is outstanding."""
        if request.end is not None:
            return
        for key in keys:
            if key not in request.responders and key not in request.spoken:
                request.responders.add(key)
                self.grants += 1
                self._of_responder.setdefault(key, set()).add(request)
        self._end_if_spent(request)

    def drop(self, request: Request[R]) -> None:
        """End a request that was not published; its requester learns of it by other means."""
        if request.end is None:
            self._end(request, RequestEnd.UNSENT)

    # Replies

    def accept(self, address: str, responder: R) -> tuple[Request[R] | None, ReplyFault | None]:
        """Return the request that the session answers, and what is wrong with the reply.

        If nothing is wrong, the caller must then call `answered`, or `unanswered` if it refuses the
        reply for another reason.
        """
        request, key = self._by_address.get(address), responder.key
        fault = None
        if request is None or not self._may_answer(request, responder):
            # A session that was not handed the request learns nothing about it.
            request, fault = None, ReplyFault.DENIED
        elif key in request.spoken:
            fault = ReplyFault.DUPLICATE
        else:
            request.responders.remove(key)
            request.spoken.add(key)
            fault = _fault(request)
        if fault is not None:
            self.refused[fault] += 1
            self._report_reply(fault.value, request, responder)
        elif request is not None:
            request.arriving += 1
        return request, fault

    def _may_answer(self, request: Request[R], responder: R) -> bool:
        key = responder.key
        is_granted = key in request.responders or key in request.spoken
        # The session may know the channel from others before it was handed the request.
        return is_granted and not responder.queue.has_new(request.id)

    def answered(self, request: Request[R], responder: R) -> None:
        """Note that the requester gets this reply."""
        request.arriving -= 1
        request.replies += 1
        self.replies += 1
        self._report_reply("accepted", request, responder)
        if request.mode is ReplyMode.ALL:
            self._end_if_spent(request)
        elif request.end is None:
            self._end(request, RequestEnd.ANSWERED)

    def unanswered(self, request: Request[R], responder: R) -> None:
        """Note that the reply was not accepted after all: the session may answer again."""
        request.arriving -= 1
        request.spoken.remove(responder.key)
        request.responders.add(responder.key)

    def _report_reply(self, what: str, request: Request[R] | None, responder: R) -> None:
        channel, id = ("", 0) if request is None else (request.channel, request.id)
        self._journal.replied(what, responder, channel, id)

    # Ends

    def lose(self, request: Request[R], key: str, code: str, text: str) -> None:
        """Note that this session will not answer, because of this code."""
        if key in request.responders:
            lost = list(request.responders) if request.is_work else [key]
            request.responders.difference_update(lost)
            request.spoken.update(lost)
            request.refusal = code, text
            self._end_if_spent(request)

    def session_ended(self, session: R) -> None:
        """End the session's requests, and wait no longer for its replies."""
        for request in list(self._of_requester.get(session, ())):
            self._end(request, RequestEnd.ABANDONED)
        self._responder_ended(session.key)

    def end_all_but(self, keys: Container[str]) -> None:
        """Wait no longer for replies of sessions other than these."""
        for key in [each for each in self._of_responder if each not in keys]:
            self._responder_ended(key)

    def _responder_ended(self, key: str) -> None:
        left = self._of_responder.pop(key, None)
        if left:
            self.grants -= len(left)
            self._left.extend([(request, key) for request in left])
            self._wake()

    def _wake(self) -> None:
        if not self._is_awake:
            self._is_awake = True
            self._begin(self.go_on)

    def go_on(self, _: float) -> bool:
        """Do one piece of the work; return whether any is left."""
        if self._left:
            request, key = self._left.popleft()
            # An ended request keeps its names: `_remembered` has counted them.
            if request.end is None:
                request.responders.discard(key)
                self._end_if_spent(request)
        elif self._to_notify:
            self.notify(self._to_notify.popleft())
        self._is_awake = bool(self._left or self._to_notify)
        return self._is_awake

    def tick(self, now: float) -> None:
        """End requests whose deadline is over."""
        for request in self._timers.ring(now, _MOST_DUE):
            if request.arriving:
                # The reply came in time; the store may still refuse it.
                self._timers.ring_by(request, now + _REPLY_GRACE_S)
            else:
                self._end(request, RequestEnd.ANSWERED if request.replies else RequestEnd.TIMEOUT)

    def _end_if_spent(self, request: Request[R]) -> None:
        """End the request if nobody is left who could answer it; otherwise note its change."""
        if request.end is not None:
            return
        if request.responders or request.arriving:
            self.changed(request)
        else:
            silent = RequestEnd.NO_RESPONDERS if request.refusal is None else RequestEnd.REFUSED
            self._end(request, RequestEnd.ANSWERED if request.replies else silent)

    def _end(self, request: Request[R], end: RequestEnd) -> None:
        self._close(request)
        request.end = end
        self.ended[end] += 1
        self.changed(request)
        self._journal.request_ended(end.value, request.requester, request.channel, request.id)
        self._remember(request)
        is_notified = request.replies and request.mode is not ReplyMode.ALL
        if not is_notified and end not in (RequestEnd.ABANDONED, RequestEnd.UNSENT):
            self._to_notify.append(request)
            self._wake()

    def _close(self, request: Request[R]) -> None:
        """Take the request out of those that are outstanding."""
        self._timers.drop(request)
        self.outstanding -= 1
        _remove(self._of_requester, request.requester, request)
        for key in (*request.responders, *request.spoken):
            if _remove(self._of_responder, key, request):
                self.grants -= 1

    def _remember(self, request: Request[R]) -> None:
        """Remember an ended request, and forget the oldest ones."""
        self._ended.append(request)
        self._remembered += _weight(request)
        while self._remembered > self.most_remembered:
            oldest = self._ended.popleft()
            self._remembered -= _weight(oldest)
            del self._by_address[oldest.address]


def _fault(request: Request[R]) -> ReplyFault | None:
    """Return what is wrong with a first reply of a session that may answer."""
    if request.end is None:
        # Others may have been first, although the store does not have their reply yet.
        is_taken = request.arriving and request.mode is not ReplyMode.ALL
        return ReplyFault.DUPLICATE if is_taken else None
    is_taken = request.end is RequestEnd.ANSWERED and request.mode is not ReplyMode.ALL
    return ReplyFault.DUPLICATE if is_taken else ReplyFault.LATE


def _weight(request: Request[R]) -> int:
    """Return how much it takes to remember the request."""
    return _OF_REQUEST + len(request.responders) + len(request.spoken)


def _remove(index: "dict[K, set[Request[R]]]", key: K, request: Request[R]) -> bool:
    """Remove the request from an index; return whether it was there."""
    requests = index.get(key)
    if requests is None or request not in requests:
        return False
    requests.remove(request)
    if not requests:
        del index[key]
    return True
