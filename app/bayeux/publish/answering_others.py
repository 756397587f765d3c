"""Requests of other shards that sessions of this one may answer, as their shards hear of them."""

import re
from collections.abc import Collection, Mapping
from typing import Final

from orjson import loads

from holdfast.bayeux.publish.repeated_calls import RepeatedCalls
from holdfast.bayeux.publish.request_calls import NOBODY_ANSWERS, SAID, Lost, Responders
from holdfast.bayeux.publish.shards_of import shard_of_reply
from holdfast.bayeux.session import Session
from holdfast.bayeux.state.calls import Asker
from holdfast.bayeux.state.server_state import ServerState
from holdfast.delivery.basics.channels import REPLIES
from holdfast.delivery.basics.ignoring import ignore
from holdfast.delivery.messages.message import Message
from holdfast.delivery.ports.homes import HomesPort
from holdfast.delivery.queues.queue import CallbackQueue
from holdfast.delivery.requests.of_others import Asked, far_request_in
from holdfast.delivery.requests.request import ReplyMode, Request
from holdfast.delivery.requests.stored_fields import REPLIED, SILENT, responders_of
from holdfast.delivery.shared_queues.work import is_work
from holdfast.delivery.shared_queues.work_queues import key_of_queue

_MAYBE_ASKED: Final = re.compile(rb'"replyTo":"' + REPLIES.encode())


class AnsweringOthers:
    """Finds such requests, and tells their shards who may answer them.

    The shard of the requester decides which reply counts. This one vouches that the session was
    handed the request.
    """

    def __init__(self, state: ServerState, homes: HomesPort) -> None:
        self._state = state
        self._requests = state.requests
        self._homes = homes
        self._calls = RepeatedCalls(state.calls)
        queue = CallbackQueue(state.queue_limits, state.counters)
        self.stand_in: Session = state.sessions.draft(queue)
        self.stand_in.go_by("")

    # What arrives

    def arrived(self, message: Message, *, is_kept: bool) -> None:
        """Attach the request to a message of another shard that asks, and has receivers here."""
        asked = far_request_in(message)
        request = None if asked is None else self._known(asked, message.channel)
        if request is None:
            return
        # Another shard may have work that a client here has asked for.
        if request.shard is not None:
            request.id = message.id
            request.is_lasting |= is_kept
            request.is_work |= is_work(message)
        request.enter_again(message)

    def _known(self, asked: Asked, channel: str) -> Request[Session] | None:
        """Return the request, which may be new here; None if its requester here is gone."""
        request, shard = self._requests.at(asked.address), self.shard_of(asked.address)
        if request is None and shard is not None:
            now, now_ms = self._requests.now, self._state.node.now_ms()
            request = Request(
                self._requests,
                self.stand_in,
                channel=channel,
                reply_to=asked.address,
                mode=ReplyMode(asked.mode),
                timeout_ms=asked.timeout_ms,
                now=now,
                now_ms=now_ms,
            )
            request.belong_to(shard)
            request.go_on(asked.deadline_ms, now, now_ms)
            self._requests.enter(request)
        return request

    def queue(self, message: Message, asked: Asked, *, is_kept: bool) -> None:
        """Attach the request to its message, which becomes work of this shard."""
        request = self._known(asked, message.channel)
        if request is None:
            return
        request.is_work, request.is_lasting = True, is_kept
        request.enter(message)
        if message.expires_ms > request.deadline_ms:
            message.expires_ms = request.deadline_ms
        # The store may have it soon.
        self._requests.grant(request, (key_of_queue(message.channel),))

    def forget(self, asked: Asked) -> None:
        """Forget a request whose message is not published."""
        request = self._requests.at(asked.address)
        if request is not None:
            self._requests.drop(request)

    def unsaved(self, message: Message) -> Request[Session] | None:
        """Return the request that a restored message is, although none was restored.

        The earlier process was killed after the message was stored.
        """
        if not message.expires_ms or _MAYBE_ASKED.search(message.wire) is None:
            return None
        ext: Mapping[str, object] = loads(message.wire).get("ext") or {}
        address, timeout_ms = ext.get("replyTo"), ext.get("timeout")
        if not isinstance(address, str) or not isinstance(timeout_ms, int):
            return None
        asked = Asked(address, ReplyMode.FIRST.value, timeout_ms, message.expires_ms)
        request = self._known(asked, message.channel)
        if request is None or request.shard is None:
            return None
        request.id, request.is_work = message.id, is_work(message)
        request.is_lasting |= message.is_durable
        return request

    def shard_of(self, address: str) -> int | None:
        """Return the shard of the session that gets replies there; None if it is this one."""
        return shard_of_reply(address, self._state.client_ids, self._homes)

    # What others are told

    def tell(self, asker: Asker, address: str) -> None:
        """Answer who may answer the request. Its message came before, or never comes."""
        request = self._requests.at(address)
        found = NOBODY_ANSWERS
        if request is not None:
            request.is_told = True
            found = self._responders(request)
        asker.answer(found._asdict())

    def has_told(self, message: Message) -> None:
        """Take note that the answer to a call says who may answer the request in it."""
        asked = far_request_in(message)
        request = None if asked is None else self._requests.at(asked.address)
        if request is not None:
            request.is_told = True
            # Some may have been turned away since.
            self._say(request, self._responders(request))

    def changed(self, request: Request[Session], keys: Collection[str], lost: Lost) -> None:
        """Tell the shard of a request which sessions here may answer it now, or will not."""
        if request.is_work:
            # The queue stands for all that may answer.
            keys = ()
        if (keys and request.is_told) or (lost and (request.is_told or request.is_work)):
            self._say(request, Responders([*keys], lost))

    def _say(self, request: Request[Session], responders: Responders) -> None:
        if request.shard is not None:
            said = {"address": request.address, **responders._asdict()}
            self._calls.ask(request, request.shard, SAID, said, answered=ignore)

    def _responders(self, request: Request[Session]) -> Responders:
        """Return who may answer; a reply on its way is none yet."""
        lost = {
            key: None if said == SILENT else loads(said)
            for key, said in request.spoken.items()
            if said != REPLIED
        }
        keys = sorted(responders_of(request))
        if request.is_work:
            is_here = self._homes.home_of(request.channel) is None
            keys = [key_of_queue(request.channel)] if keys and is_here else []
        return Responders(keys, lost)
