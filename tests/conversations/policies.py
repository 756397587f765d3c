"""Server-side code for stories: what an application would install by `--extension`."""

import asyncio
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from holdfast.bayeux.api import ServerApi
from holdfast.bayeux.extending.base import ServerExtension, SessionExtension
from holdfast.bayeux.rights import Denial, SecurityPolicy, Vote
from holdfast.bayeux.session import Session
from holdfast.bayeux.state.service_channels import ServiceCall
from holdfast.bayeux.wire.operation import Operation
from holdfast.delivery.messages.batch import Batch

Json = dict[str, Any]


class Doorkeeper(SecurityPolicy):
    """Refuses Mallory's handshakes, and denies the use of some channels."""

    def can_handshake(self, session: Session, handshake: Json) -> Denial | None:
        name = (handshake.get("ext") or {}).get("name")
        if name == "mallory":
            return Denial(ext={"reason": "you again"})
        if name == "early":
            advice = {"reconnect": "handshake", "interval": 7000, "timeout": 30000}
            return Denial(advice=advice)
        return None

    def can_create(self, session: Session, channel: str, message: Json) -> Denial | None:
        return self._denied(channel, "/guarded/create")

    def can_subscribe(self, session: Session, channel: str, message: Json) -> Denial | None:
        return self._denied(channel, "/guarded/subscribe")

    def can_publish(self, session: Session, channel: str, message: Json) -> Denial | None:
        return self._denied(channel, "/guarded/publish")

    def _denied(self, channel: str, prefix: str) -> Denial | None:
        if channel.startswith(prefix):
            advice = {"reconnect": "retry", "interval": 9000, "timeout": 30000}
            return Denial(advice=advice, ext={"ask": "the doorkeeper"})
        return None


def doorkeeper(server: ServerApi) -> None:
    server.rights.policy = Doorkeeper()


class Listeners(SecurityPolicy):
    """Denies publishes on channels without subscribers."""

    def can_create(self, session: Session, channel: str, message: Json) -> Denial | None:
        is_publish = message["channel"] != "/meta/subscribe"
        return Denial("nobody_listens") if is_publish else None


def listeners(server: ServerApi) -> None:
    server.rights.policy = Listeners()


def authorizers(server: ServerApi) -> None:
    """Authorizers of /voted/**: all may create channels; other rights differ by channel."""

    def granting(*granted: Operation) -> Any:
        def vote(operation: Operation, channel: str, session: Session, message: Json) -> Vote:
            return Vote.GRANT if operation in granted else Vote.IGNORE

        return vote

    def refusing(operation: Operation, channel: str, session: Session, message: Json) -> Denial:
        return Denial("this_is_a_shrine")

    server.rights.add("/voted/**", granting(Operation.CREATE))
    server.rights.add("/voted/read", granting(Operation.SUBSCRIBE))
    server.rights.add("/voted/both", granting(Operation.SUBSCRIBE, Operation.PUBLISH))
    server.rights.add("/voted/shrine", granting(Operation.SUBSCRIBE, Operation.PUBLISH))
    server.rights.add("/voted/shrine", refusing)


def echo(call: ServiceCall) -> None:
    call.answer(call.data)


def fail(call: ServiceCall) -> None:
    call.fail({"reason": call.data})


def crash(call: ServiceCall) -> None:
    raise RuntimeError(f"crashed by {call.data}")


def pace(call: ServiceCall) -> None:
    wanted = call.message["data"]
    call.session.timeout_s = wanted["timeout"] / 1000
    call.session.interval_s = wanted["interval"] / 1000
    call.session.is_advised = False


def hush(call: ServiceCall) -> None:
    call.session.broadcast_to_publisher = False


def services(server: ServerApi) -> None:
    """Services by which a story makes the server do something."""

    def greet(call: ServiceCall) -> None:
        server.publish(str(call.data), "greetings from the server")

    def end(call: ServiceCall) -> None:
        for session in list(server.sessions):
            if session.client_id == call.data:
                server.end_by_server(session)

    for service in (echo, fail, crash, pace, hush, greet, end):
        server.services.add(f"/service/{service.__name__}", service)


class Welcome(ServerExtension):
    """Sends a message to every client before its handshake is answered."""

    def __init__(self, server: ServerApi) -> None:
        self._server = server

    def negotiate(self, session: Session, handshake: Json, reply: Json, now: float) -> None:
        self._server.deliver_event(session, {"channel": "/welcome", "data": "you are welcome"})


def welcome(server: ServerApi) -> None:
    server.extend(Welcome(server))


class Censor(SessionExtension):
    """Drops messages with a certain word, fails on another, and marks every reply."""

    def incoming(self, session: Session, message: Json, now: float) -> bool:
        if message.get("data") == "crash":
            raise RuntimeError("the censor is confused")
        return message.get("data") != "censored"

    def outgoing(
        self,
        session: Session,
        reply: Json,
        asked: Mapping[str, Any],
        now: float,
        *,
        batch: Batch | None,
    ) -> None:
        if asked.get("burn"):
            raise RuntimeError("the censor's desk is on fire")
        reply.setdefault("ext", {})["read"] = True


class Censorship(ServerExtension):
    async def negotiate(
        self, session: Session, handshake: Json, reply: Json, now: float
    ) -> SessionExtension | None:
        if (handshake.get("ext") or {}).get("name") == "broken":
            raise RuntimeError("the office is closed")
        return Censor()

    def event(self, event: Json) -> None:
        event["approved"] = True


def censorship(server: ServerApi) -> None:
    server.extend(Censorship())


class Hesitation(ServerExtension):
    """Keeps clients waiting that ask for it, and does not even let itself be cancelled."""

    async def negotiate(
        self, session: Session, handshake: Json, reply: Json, now: float
    ) -> SessionExtension | None:
        until = time.monotonic() + (handshake.get("ext") or {}).get("seconds", 0)
        while time.monotonic() < until:
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(0.1)
        return None


def hesitation(server: ServerApi) -> None:
    server.extend(Hesitation())


class Measure(SessionExtension):
    """Drops words of more than ten letters, and fails on those of three."""

    def incoming(self, session: Session, message: Json, now: float) -> bool:
        word = message.get("data")
        if not isinstance(word, str):
            return True
        if len(word) == 3:
            raise RuntimeError("three is not a number")
        return len(word) <= 10


class Measuring(ServerExtension):
    def negotiate(
        self, session: Session, handshake: Json, reply: Json, now: float
    ) -> SessionExtension | None:
        return Measure()


def measuring(server: ServerApi) -> None:
    server.extend(Measuring())
