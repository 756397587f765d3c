"""Requests of other shards: which sessions of this one may answer them, and what those say."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final, cast

from orjson import loads

from holdfast.bayeux.publish.event import EventPublish
from holdfast.bayeux.publish.repeated_calls import RepeatedCalls
from holdfast.bayeux.publish.request_calls import (
    NOBODY_ANSWERS,
    REPLIED,
    SAID,
    Responders,
    Verdict,
)
from holdfast.bayeux.publish.requests import FAULTS
from holdfast.bayeux.publish.shards_of import shard_of_reply
from holdfast.bayeux.session import Session
from holdfast.bayeux.state.calls import Answer, Asker, said_by
from holdfast.bayeux.state.server_state import ServerState
from holdfast.bayeux.wire.errors import ErrorReply, Refused
from holdfast.delivery.basics.channels import REPLIES
from holdfast.delivery.basics.ignoring import ignore
from holdfast.delivery.basics.timers import Timers
from holdfast.delivery.messages.message import Message
from holdfast.delivery.messages.storing import NO_FIELDS, PersistOutcome, RequestFields
from holdfast.delivery.ports.homes import HomesPort
from holdfast.delivery.queues.queue import CallbackQueue
from holdfast.delivery.requests.of_others import (
    Asked,
    FarRequest,
    asked_elsewhere,
    field_of,
    kept_in,
    removal_of,
    spoken_fields,
)
from holdfast.delivery.requests.outstanding import REMEMBERED_S
from holdfast.delivery.requests.request import (
    Remembered,
    ReplyFault,
    ReplyMode,
    Request,
    RequestEnd,
    remove_from,
)
from holdfast.delivery.requests.responders import may_answer
from holdfast.delivery.requests.stored_fields import REPLIED as HAS_REPLIED
from holdfast.delivery.requests.stored_fields import SILENT, refusal_of
from holdfast.delivery.shared_queues.work import is_work
from holdfast.delivery.shared_queues.work_queues import key_of_queue

if TYPE_CHECKING:
    from holdfast.delivery.queues.receivers import Receiver

# How much ended requests remember, as in `Requests`.
_MOST_REMEMBERED: Final = 100_000
_MOST_DUE: Final = 2000
_MAYBE_ASKED: Final = re.compile(rb'"replyTo":"' + REPLIES.encode())


class AnsweringOthers:
    """Knows which sessions of this shard may answer the requests of others; a `RequestBook`.

    The shard of the requester decides which reply counts. This one vouches that the session was
    handed the request.
    """

    def __init__(self, state: ServerState, homes: HomesPort) -> None:
        self._state = state
        self._homes = homes
        self._calls = RepeatedCalls(state.calls)
        self._by_address: dict[str, FarRequest[Session]] = {}
        # A dict in place of a set, which would have the order of addresses in memory.
        self._of_key: dict[str, dict[Request[Session], None]] = {}
        self._timers: Timers[FarRequest[Session]] = Timers()
        self._remembered: Remembered[Session] = Remembered(_MOST_REMEMBERED)
        # In place of requesters, which are not here.
        self._nobody = state.sessions.draft(CallbackQueue(state.queue_limits, state.counters))
        self._now = 0.0

    def __len__(self) -> int:
        return len(self._by_address)

    def knows(self, address: str) -> bool:
        """Return whether a session here was handed the request of another shard."""
        return address in self._by_address

    # What arrives

    def arrived(self, message: Message, *, is_kept: bool) -> None:
        """Attach the request to a message of another shard that asks, and has receivers here."""
        asked = asked_elsewhere(message)
        if asked is None:
            return
        request = self._known_as(asked, message.channel)
        if request is None:
            # Another shard has work that a client here has asked for.
            own = self._state.requests.at(asked.address)
            if own is not None:
                own.enter_again(message)
            return
        request.id = message.id
        request.is_kept |= is_kept
        request.is_work |= is_work(message)
        request.enter_again(message)

    def _known_as(self, asked: Asked, channel: str) -> FarRequest[Session] | None:
        """Return such a request, which may be new; None if it is of this shard."""
        request, shard = self._by_address.get(asked.address), self._shard_of(asked.address)
        if request is None and shard is not None:
            request = self._enter(asked, channel, shard)
        return request

    def queue(self, message: Message, asked: Asked, *, is_kept: bool) -> None:
        """Attach the request to its message, which becomes work of this shard."""
        request = self._known_as(asked, message.channel)
        if request is None:
            return
        request.is_work, request.is_kept = True, is_kept
        request.enter(message)
        if message.expires_ms > request.deadline_ms:
            message.expires_ms = request.deadline_ms
        # The store may have it soon.
        self.grant(request, (key_of_queue(message.channel),))

    def forget(self, asked: Asked) -> None:
        """Forget a request whose message is not published."""
        request = self._by_address.get(asked.address)
        if request is not None:
            self._end(request)
            del self._by_address[asked.address]

    def _enter(self, asked: Asked, channel: str, shard: int) -> FarRequest[Session]:
        request = FarRequest(
            self,
            self._nobody,
            asked,
            channel=channel,
            shard=shard,
            now=self._now,
            now_ms=self._state.node.now_ms(),
        )
        self._by_address[asked.address] = request
        self._timers.ring_by(request, request.ends_at)
        return request

    def tell(self, asker: Asker, address: str) -> None:
        """Answer who may answer the request. Its message came before, or never comes."""
        request = self._by_address.get(address)
        found = NOBODY_ANSWERS
        if request is not None:
            request.is_told = True
            found = self._responders(request)
        asker.answer(found._asdict())

    def has_told(self, message: Message) -> None:
        """Take note that the answer to a call says who may answer the request in it."""
        asked = asked_elsewhere(message)
        request = None if asked is None else self._by_address.get(asked.address)
        if request is not None:
            request.is_told = True
            # Some may have been turned away since.
            self._say(request, self._responders(request))

    # As its messages see it

    def keep(self, request: Request[Session], keys: Iterable[str]) -> RequestFields:
        # They are stored when the message is shown, before any receiver can settle it. Until then,
        # the message itself says who may answer.
        return NO_FIELDS

    def grant(self, request: Request[Session], keys: Iterable[str]) -> None:
        """Let sessions here answer a request."""
        request = _far(request)
        if request.end is not None:
            return
        new = [key for key in keys if key not in request.responders and key not in request.spoken]
        for key in new:
            request.responders.add(key)
            self._of_key.setdefault(key, {})[request] = None
        if new and request.is_kept:
            self._state.store.save_requests(field_of(request))
        if new and request.is_told and not request.is_work:
            self._say(request, Responders(new, {}))

    def lose(
        self, request: Request[Session], key: str, refusal: tuple[str, str] | None = None
    ) -> None:
        """Record that this session will not answer; if the request is work, that no one will."""
        request = _far(request)
        if key not in request.responders:
            return
        lost = [*request.responders] if request.is_work else [key]
        said = dict.fromkeys(lost, SILENT if refusal is None else refusal_of(*refusal))
        request.responders.difference_update(lost)
        request.spoken.update(said)
        for each in lost:
            remove_from(self._of_key, each, request)
        if request.end is not None:
            return
        if request.is_kept:
            self._state.store.save_requests(spoken_fields(request, said))
        if request.is_told or request.is_work:
            self._say(request, Responders((), {key: refusal}))

    def crossed(self, request: Request[Session]) -> None:
        """Do nothing: the requester's shard asks the others."""

    def _say(self, request: FarRequest[Session], responders: Responders) -> None:
        said = {"address": request.address, **responders._asdict()}
        self._calls.ask(request, request.shard, SAID, said, answered=ignore)

    def session_ended(self, key: str) -> None:
        """Record that this session answers no request."""
        for request in [*self._of_key.get(key, ())]:
            self._leave(request, key)

    def _leave(self, request: Request[Session], key: str) -> None:
        if request.is_work:
            # Its work goes to another session.
            request.responders.discard(key)
            remove_from(self._of_key, key, request)
        else:
            self.lose(request, key)

    def _responders(self, request: FarRequest[Session]) -> Responders:
        """Return who may answer; a reply on its way is none yet."""
        coming = [key for key, said in request.spoken.items() if said == HAS_REPLIED]
        lost = {
            key: None if said == SILENT else loads(said)
            for key, said in request.spoken.items()
            if said != HAS_REPLIED
        }
        keys = [*sorted(request.responders), *sorted(coming)]
        if request.is_work:
            is_here = self._homes.home_of(request.channel) is None
            keys = [key_of_queue(request.channel)] if keys and is_here else []
        return Responders(keys, lost)

    # Replies

    def answer(self, publish: EventPublish, sender: Session, wire: bytes) -> PersistOutcome | None:
        """Send the reply of a session to the requester's shard. Raises `Refused`.

        Returns the outcome, or None if the publish is told later.
        """
        address, key = publish.channel.name, sender.key
        request = self._by_address[address]
        fault = None
        if key in request.spoken:
            fault = ReplyFault.DUPLICATE
        elif key not in request.responders or sender.queue.has_new(request.id):
            # It may know the channel from other sessions.
            fault = ReplyFault.DENIED
        if fault is not None:
            self._state.requests.refused[fault] += 1
            # A session that was not asked learns nothing of the request, and answers none.
            is_asked = fault is not ReplyFault.DENIED
            channel, id = (request.channel, request.id) if is_asked else ("", 0)
            self._state.journal.replied(fault.value, key, channel, id)
            raise Refused(FAULTS[fault], address)
        if not self._homes.may_send(request.shard):
            return PersistOutcome.REFUSED
        request.responders.remove(key)
        request.spoken[key] = HAS_REPLIED
        reply = {"address": address, "key": key, "sender": sender.name, "event": loads(wire)}
        heard = partial(self._heard, publish, sender, request)
        self._state.calls.send(request.shard, REPLIED, reply, heard)
        return None

    def _heard(
        self,
        publish: EventPublish,
        sender: Session,
        request: FarRequest[Session],
        answer: Answer | None,
    ) -> None:
        outcome = PersistOutcome.UNKNOWN
        if answer is not None:
            outcome = self._outcome(publish, request.address, answer)
        if outcome is PersistOutcome.UNKNOWN or (
            outcome is PersistOutcome.REFUSED and publish.refused is None
        ):
            # It may reply again: the requester's shard knows whether this one counted.
            del request.spoken[sender.key]
            request.responders.add(sender.key)
            self._of_key.setdefault(sender.key, {})[request] = None
            if sender.is_gone:
                self._leave(request, sender.key)
        else:
            remove_from(self._of_key, sender.key, request)
        if publish.done is not None:
            publish.done(outcome)

    def _outcome(self, publish: EventPublish, address: str, answer: Answer) -> PersistOutcome:
        verdict = said_by(Verdict, answer)
        if verdict is None:
            publish.refused = Refused(ErrorReply.SERVER_FAULT)
            return PersistOutcome.REFUSED
        fault = ReplyFault(verdict.fault) if verdict.fault else None
        if fault is not None:
            publish.refused = Refused(FAULTS[fault], address)
        is_kept = fault is None and not verdict.is_refused
        return PersistOutcome.KEPT if is_kept else PersistOutcome.REFUSED

    # Time, and other processes

    def tick(self, now: float) -> None:
        """End requests whose deadline has passed, and forget those that ended long before."""
        self._now = now
        self._calls.tick()
        for each in self._remembered.before(now - REMEMBERED_S, _MOST_DUE):
            self._forget(each)
        now_ms = self._state.node.now_ms()
        for request in self._timers.ring(now, _MOST_DUE):
            if now_ms < request.deadline_ms:
                self._timers.ring_by(request, now + (request.deadline_ms - now_ms) / 1000)
                continue
            self._end(request)
            for each in self._remembered.add(request, now):
                self._forget(each)

    def _end(self, request: FarRequest[Session]) -> None:
        request.end = RequestEnd.TIMEOUT
        self._timers.drop(request)
        if request.is_kept:
            self._state.store.save_requests(removal_of(request))
        for key in request.responders:
            remove_from(self._of_key, key, request)

    def _forget(self, request: Request[Session]) -> None:
        self._by_address.pop(request.address, None)

    def fields(self) -> RequestFields:
        """Return all stored fields."""
        found: dict[str, bytes] = {}
        for each in self._outstanding():
            if each.is_kept:
                found |= _fields_of(each)
        return found

    def passing_fields(self) -> Iterator[tuple[str, RequestFields]]:
        """Yield the names and fields of those that the store does not have."""
        for each in self._outstanding():
            if not each.is_kept:
                fields = _fields_of(each)
                yield next(iter(fields)), fields

    def _outstanding(self) -> Iterator[FarRequest[Session]]:
        return (each for each in self._by_address.values() if each.end is None)

    def _reopen(self, fields: RequestFields, now: float, *, are_kept: bool) -> None:
        """Continue with what an earlier process knew."""
        self._now = now
        left: dict[str, bytes] = {}
        for address, kept in kept_in(fields).items():
            shard = self._shard_of(address)
            if kept is None or shard is None or kept.asked.deadline_ms <= self._state.node.now_ms():
                left |= {name: b"" for name in fields if address in name}
                continue
            request = self._enter(kept.asked, kept.channel, shard)
            request.id, request.is_kept, request.is_work = kept.id, are_kept, kept.is_work
            request.spoken.update(kept.said)
            request.responders.update([each for each in kept.responders if each not in kept.said])
            for key in request.responders:
                self._of_key.setdefault(key, {})[request] = None
        if left and are_kept:
            self._state.store.save_requests(left)

    def _shard_of(self, address: str) -> int | None:
        return shard_of_reply(address, self._state.client_ids, self._homes)

    def rejoin(self, receivers: "Collection[Receiver]") -> None:
        """Attach restored messages to requests; who has gone does not answer."""
        for receiver in receivers:
            for message in receiver.queue.messages():
                request = self._request_of(message)
                if request is not None:
                    request.enter_again(message)
                    if may_answer(receiver, message):
                        self.grant(request, (receiver.key,))
        keys = {each.key for each in receivers}
        for key in [each for each in self._of_key if each not in keys]:
            self.session_ended(key)

    def _request_of(self, message: Message) -> FarRequest[Session] | None:
        if _MAYBE_ASKED.search(message.wire) is None:
            return None
        ext: Mapping[str, object] = loads(message.wire).get("ext") or {}
        address, timeout_ms = ext.get("replyTo"), ext.get("timeout")
        if not isinstance(address, str) or not isinstance(timeout_ms, int):
            return None
        request, shard = self._by_address.get(address), self._shard_of(address)
        if request is None and shard is not None and message.expires_ms:
            # The earlier process was killed after the message was stored.
            asked = Asked(address, ReplyMode.FIRST.value, timeout_ms, message.expires_ms)
            request = self._enter(asked, message.channel, shard)
            request.id, request.is_kept = message.id, message.is_durable
            request.is_work = is_work(message)
        return request


def _far(request: Request[Session]) -> FarRequest[Session]:
    return cast("FarRequest[Session]", request)


def _fields_of(request: FarRequest[Session]) -> dict[str, bytes]:
    # A reply on its way has no field: the requester's shard knows whether it counts.
    said = {key: what for key, what in request.spoken.items() if what != HAS_REPLIED}
    return {**field_of(request), **spoken_fields(request, said)}
