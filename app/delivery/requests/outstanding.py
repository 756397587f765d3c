"""Requests: messages that their receivers may answer, and the answers.

A request is *outstanding* until it ends. Each session that was handed the request may answer it
once. Ended requests are remembered for some minutes, to explain why a late reply is refused.

The requester's shard owns a request: it decides which replies count. Other shards know it if their
sessions may answer it; they tell the owner what changes.
"""

from collections import Counter, deque
from collections.abc import Callable, Collection, Container, Iterable
from functools import partial
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from holdfast.delivery.basics.timers import Timers
from holdfast.delivery.messages.storing import NO_FIELDS, PersistOutcome, RequestFields, RequestStep
from holdfast.delivery.ports.journal_port import DeliveryJournal
from holdfast.delivery.queues.receivers import Receiver
from holdfast.delivery.requests import stored_fields
from holdfast.delivery.requests.request import (
    Remembered,
    ReplyFault,
    ReplyMode,
    Request,
    RequestEnd,
    fault_of_reply,
    remove_from,
)
from holdfast.delivery.requests.stored_fields import REPLIED, SILENT, responders_of

if TYPE_CHECKING:
    from holdfast.delivery.requests.elsewhere import Lost, RequestsElsewhere

R = TypeVar("R", bound=Receiver)

# How much ended requests remember, see `Remembered`.
_MOST_REMEMBERED: Final = 100_000
# How long they are remembered. A responder that takes longer has been forgotten by its requester
# too.
_REMEMBERED_S: Final = 300.0
# How many requests one tick ends at their deadline, about 3 us each.
_MOST_DUE: Final = 2000
# How long a request at its deadline waits for the store to keep a reply.
_REPLY_GRACE_S: Final = 0.1
# The pause before the next attempt to inform a requester that could not be informed.
_UNTOLD_S: Final = 1.0


class Requests(Generic[R]):
    """All requests of this shard, and requests of others that its sessions may answer.

    Args:
        begin: Runs a work function from the end of this turn on, until it returns False.
        save: Changes these fields in the store.
        announce_end: Informs the requester of an ended request, and calls the step's `known` when
            the event is in the requester's queue, or with REFUSED if this must be tried again.
    """

    def __init__(
        self,
        journal: DeliveryJournal,
        *,
        begin: Callable[[Callable[[float], bool]], None],
        save: Callable[[RequestFields], None],
        announce_end: Callable[[Request[R], RequestStep], None],
    ) -> None:
        self._journal = journal
        self._begin = begin
        self._save_fields = save
        self._announce_end = announce_end
        self._is_awake = False
        # Called with a session whose requests changed, if something depends on that.
        self.changed: Callable[[R], None] | None = None
        # Whether clients may send requests.
        self.is_offered = False
        # What connects them with other shards, if there are any.
        self.elsewhere: RequestsElsewhere | None = None
        # By the channels that responders publish to.
        self._by_address: dict[str, Request[R]] = {}
        # Dicts in place of sets, which would have the order of addresses in memory.
        self._of_requester: dict[R, dict[Request[R], None]] = {}
        self._of_responder: dict[str, dict[Request[R], None]] = {}
        self._timers: Timers[Request[R]] = Timers()
        # What is due when responders have ended, and requesters must be informed.
        self._later: deque[Callable[[], None]] = deque()
        self.remembered: Remembered[R] = Remembered(_MOST_REMEMBERED)
        # The time of the last tick.
        self.now = 0.0
        # Requests of sessions here: sent in this process, and going on from an earlier one.
        self.outstanding = self.asked = self.restored = 0
        # The number of session names in outstanding ones.
        self.grants = 0
        self.ended: Counter[RequestEnd] = Counter()
        self.replies = 0
        self.refused: Counter[ReplyFault] = Counter()

    def outstanding_of(self, requester: R) -> Collection[Request[R]]:
        """Return the outstanding requests of the session."""
        return self._of_requester.get(requester, ())

    def _note_change(
        self, request: Request[R], keys: "Collection[str]" = (), lost: "Lost | None" = None
    ) -> None:
        """Tell who depends on it that a request has changed: who may or will not answer it now."""
        if request.shard is None:
            if self.changed is not None:
                self.changed(request.requester)
        elif self.elsewhere is not None and (keys or lost):
            self.elsewhere.changed(request, keys, lost or {})

    # Asking

    def open(self, request: Request[R]) -> None:
        """Register a request that is being sent; `grant` follows."""
        if self.elsewhere is not None:
            self.elsewhere.expect(request)
        self.enter(request)
        self.asked += 1
        self._journal.asked(request.requester, request.channel, request.timeout_ms)

    def reopen(self, request: Request[R], keys: Iterable[str]) -> None:
        """Continue a request of an earlier process, which these sessions may answer."""
        self.enter(request)
        if request.shard is None:
            self.restored += 1
            if self.elsewhere is not None:
                self.elsewhere.expect(request)
        self.grant(request, keys)

    def at(self, address: str) -> Request[R] | None:
        """Return the request that is answered on this channel, even if it has ended."""
        return self._by_address.get(address)

    def by_message(self) -> dict[int, Request[R]]:
        """Return the outstanding requests by message id."""
        return {each.id: each for each in self.all()}

    def all(self) -> list[Request[R]]:
        """Return the outstanding requests, of others, too."""
        sent = self._of_requester.values()
        return [request for its in sent for request in its if request.end is None]

    def enter(self, request: Request[R]) -> None:
        """Know a request from now on."""
        assert request.address not in self._by_address
        self._by_address[request.address] = request
        self._of_requester.setdefault(request.requester, {})[request] = None
        self._timers.ring_by(request, request.ends_at)
        self.outstanding += request.counted

    def grant(self, request: Request[R], keys: Iterable[str]) -> None:
        """Allow the sessions with these names to answer, if the request is outstanding."""
        if request.end is not None:
            return
        # The store knows the first responders if it has the message.
        is_known = request.is_kept and not (request.responders or request.spoken)
        new: list[str] = []
        for key in keys:
            if key not in request.responders and key not in request.spoken:
                request.responders.add(key)
                self.grants += request.counted
                self._of_responder.setdefault(key, {})[request] = None
                new.append(key)
        if not self._ends_if_spent(request) and new:
            if not is_known:
                self.save_asked(request)
            self._note_change(request, new)

    def keep(self, request: Request[R], keys: Iterable[str]) -> RequestFields:
        """Return the fields to store together with the request's message for these sessions."""
        if not request.is_durable:
            return NO_FIELDS
        request.is_kept = True
        return stored_fields.asked(request, keys)

    def keep_by_itself(self, request: Request[R]) -> None:
        """Store a request, even an ended one, whose message is not stored."""
        if not request.is_kept:
            self.save_asked(request)

    def save_asked(self, request: Request[R]) -> None:
        """Store which sessions may answer."""
        self._save(request, stored_fields.asked(request, responders_of(request)))

    def _save(self, request: Request[R], fields: RequestFields) -> None:
        """Store changed fields, if the store is to have the request."""
        # The reply that is about to be stored removes all fields.
        is_ending = request.arriving and request.mode is not ReplyMode.ALL
        if request.is_durable and not (is_ending and request.shard is None):
            request.is_kept = True
            self._save_fields(fields)

    def drop(self, request: Request[R]) -> None:
        """End a request that was not published. Its requester is informed in another way."""
        if request.end is None:
            self._end(request, RequestEnd.UNSENT)

    def crossed(self, request: Request[R]) -> None:
        """Ask other shards which of their sessions get the message of the request."""
        if self.elsewhere is not None:
            self.elsewhere.ask(request)

    # Replies

    def accept(self, address: str, responder: R) -> tuple[Request[R] | None, ReplyFault | None]:
        """Return the request that the session answers, and the fault of the reply, if any.

        Without a fault, the caller must then call `answered`, or `unanswered` if it refuses the
        reply for another reason.
        """
        request = self._by_address.get(address)
        if request is not None and not self._may_answer(request, responder):
            # A session that was not handed the request learns nothing about it.
            request = None
        return self._accept(request, responder.key)

    def accept_from(self, address: str, key: str) -> tuple[Request[R] | None, ReplyFault | None]:
        """Do the same for a session of another shard, which has handed it the request."""
        request = self._by_address.get(address)
        if request is not None:
            self.grant(request, (key,))
        return self._accept(request, key)

    def _accept(
        self, request: Request[R] | None, key: str
    ) -> tuple[Request[R] | None, ReplyFault | None]:
        fault: ReplyFault | None = ReplyFault.DENIED
        if request is not None and key in request.spoken:
            fault = ReplyFault.DUPLICATE
        elif request is not None:
            if key in request.responders:
                request.responders.remove(key)
                request.spoken[key] = REPLIED
            fault = fault_of_reply(request)
        if fault is not None:
            self.refused[fault] += 1
            self._report_reply(fault.value, request, key)
        elif request is not None:
            request.arriving += 1
        return request, fault

    def _may_answer(self, request: Request[R], responder: R) -> bool:
        key = responder.key
        is_granted = key in request.responders or key in request.spoken
        # The session may know the channel from other sessions before the request is handed over to
        # it.
        return is_granted and not responder.queue.has_new(request.id)

    def fields_of_reply(self, request: Request[R], key: str) -> RequestFields:
        """Return the fields to change when this reply is stored."""
        if not request.is_kept:
            return NO_FIELDS
        if request.mode is ReplyMode.ALL:
            return stored_fields.spoken(request, {key: REPLIED})
        self._set_leaving(request, is_leaving=True)
        return stored_fields.removed(request)

    def _set_leaving(self, request: Request[R], *, is_leaving: bool) -> None:
        """Record whether a message that removes the request from the store is on its way there."""
        request.is_leaving = is_leaving
        self._note_change(request)

    def answered(self, request: Request[R], key: str) -> None:
        """Record that the requester gets this reply, or that its shard has decided about it."""
        request.arriving -= 1
        if request.shard is not None:
            return
        request.replies += 1
        self.replies += 1
        self._report_reply("accepted", request, key)
        if request.end is not None:
            return
        if request.mode is ReplyMode.ALL:
            self._ends_if_spent(request)
            self._note_change(request)
        else:
            self._end(request, RequestEnd.ANSWERED)

    def unanswered(self, request: Request[R], key: str) -> None:
        """Record that the reply was not accepted after all. The session may answer again."""
        request.arriving -= 1
        del request.spoken[key]
        request.responders.add(key)
        if request.end is None and request.is_kept:
            # It was left out of a change made in the meantime.
            self.save_asked(request)
            self._save(request, stored_fields.spoken(request, {key: b""}))
            self._save(request, stored_fields.spoken(request, request.spoken))
            self._set_leaving(request, is_leaving=False)
        if request not in self._of_responder.get(key, ()):
            # The session ended in the meantime.
            self._do_later((partial(self._leave, request, key),))

    def _report_reply(self, what: str, request: Request[R] | None, key: str) -> None:
        channel, id = ("", 0) if request is None else (request.channel, request.id)
        self._journal.replied(what, key, channel, id)

    # Ends

    def lose(self, request: Request[R], key: str, refusal: tuple[str, str] | None = None) -> None:
        """Record that this session will not answer, because it refused if `refusal` is given."""
        if key not in request.responders:
            return
        lost = list(request.responders) if request.is_work else [key]
        said = SILENT
        if refusal is not None:
            request.refusal = refusal
            said = stored_fields.refusal_of(*refusal)
        request.responders.difference_update(lost)
        request.spoken.update(dict.fromkeys(lost, said))
        if request.end is None and not self._ends_if_spent(request):
            self._save(request, stored_fields.spoken(request, dict.fromkeys(lost, said)))
            self._note_change(request, lost={key: refusal})

    def session_ended(self, session: R) -> None:
        """End the session's requests, and stop waiting for its replies."""
        for request in list(self._of_requester.get(session, ())):
            if request.end is None:
                self._end(request, RequestEnd.ABANDONED)
            else:
                # The requester is gone, so it cannot be informed.
                self._give_up(request)
        self._responder_ended(session.key)

    def end_all_but(self, keys: Container[str]) -> None:
        """Stop waiting for replies of all sessions of this shard except these."""
        far = self.elsewhere
        for key in [each for each in self._of_responder if each not in keys]:
            if far is None or not far.is_far(key):
                self._responder_ended(key)

    def _responder_ended(self, key: str) -> None:
        left = self._of_responder.pop(key, None)
        if left:
            self.grants -= sum([each.counted for each in left])
            self._do_later([partial(self._leave, request, key) for request in left])

    def _do_later(self, steps: Iterable[Callable[[], None]]) -> None:
        self._later.extend(steps)
        if not self._is_awake:
            self._is_awake = True
            self._begin(self.go_on)

    def go_on(self, _: float) -> bool:
        """Do one piece of work. Returns whether any is left."""
        try:
            if self._later:
                self._later.popleft()()
        finally:
            self._is_awake = bool(self._later)
        return self._is_awake

    def _leave(self, request: Request[R], key: str) -> None:
        """Record that a responder has ended."""
        # Ended requests keep their names, because `Remembered` has counted them.
        if request.end is not None:
            return
        if request.shard is not None and not request.is_work:
            self.lose(request, key)
            return
        request.responders.discard(key)
        if self._ends_if_spent(request) or request.is_work:
            # Work goes to another session, or to the next one of this name.
            return
        if request.is_kept and key not in request.spoken:
            # After a restart, a later session with this name must not appear to have the request.
            request.spoken[key] = SILENT
            self._save(request, stored_fields.spoken(request, {key: SILENT}))
            self._note_change(request)

    def _notify(self, request: Request[R]) -> None:
        """Inform the requester that its request ended."""
        if request not in self._of_requester.get(request.requester, ()):
            return
        fields = stored_fields.removed(request) if request.is_kept else NO_FIELDS
        self._set_leaving(request, is_leaving=request.is_kept)
        try:
            self._announce_end(request, RequestStep(fields, partial(self._announced, request)))
        except BaseException:
            # Otherwise the request would stay outstanding forever.
            self._give_up(request)
            raise

    def tick(self, now: float) -> None:
        """End requests whose deadline has passed, and forget requests that ended long before."""
        self.now = now
        for each in self.remembered.before(now - _REMEMBERED_S, _MOST_DUE):
            del self._by_address[each.address]
        if self.elsewhere is not None:
            self.elsewhere.tick()
        for request in self._timers.ring(now, _MOST_DUE):
            if request.end is not None:
                self._do_later((partial(self._notify, request),))
            elif request.arriving:
                # The reply came in time, but the store may still refuse it.
                self._timers.ring_by(request, now + _REPLY_GRACE_S)
            else:
                self._end(request, RequestEnd.ANSWERED if request.replies else RequestEnd.TIMEOUT)

    def _ends_if_spent(self, request: Request[R]) -> bool:
        """End the request if all possible responders are gone. Returns whether it ended."""
        if request.responders or request.arriving or request.unheard:
            return False
        silent = RequestEnd.NO_RESPONDERS if request.refusal is None else RequestEnd.REFUSED
        self._end(request, RequestEnd.ANSWERED if request.replies else silent)
        return True

    def _end(self, request: Request[R], end: RequestEnd) -> None:
        self._timers.drop(request)
        for key in (*request.responders, *request.spoken):
            if remove_from(self._of_responder, key, request):
                self.grants -= request.counted
        request.end = end
        if request.shard is not None:
            self._give_up(request)
            return
        self.ended[end] += 1
        self._journal.request_ended(end.value, request.requester, request.channel, request.id)
        if end in (RequestEnd.ABANDONED, RequestEnd.UNSENT):
            self._give_up(request)
        elif request.replies and request.mode is not ReplyMode.ALL:
            # The reply was stored together with the end, and tells the requester.
            self._told(request)
        else:
            self._do_later((partial(self._notify, request),))

    def _announced(self, request: Request[R], outcome: PersistOutcome) -> None:
        if outcome is PersistOutcome.REFUSED:
            # The store does not take the event now.
            self._set_leaving(request, is_leaving=False)
            self._timers.ring_by(request, self.now + _UNTOLD_S)
        else:
            self._told(request)

    def _told(self, request: Request[R]) -> None:
        """Record that the requester will be informed. The request is no longer outstanding."""
        if remove_from(self._of_requester, request.requester, request):
            self._timers.drop(request)
            self.outstanding -= request.counted
            # There may not have been a tick yet.
            now = max(self.now, request.ends_at - request.timeout_ms / 1000)
            for each in self.remembered.add(request, now):
                del self._by_address[each.address]
            self._note_change(request)

    def _give_up(self, request: Request[R]) -> None:
        """Remove a request whose requester need not be informed."""
        if request.is_kept:
            self._save_fields(stored_fields.removed(request))
        self._told(request)
