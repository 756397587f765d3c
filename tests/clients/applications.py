"""Applications inside the server, for the clients to talk with: `--extension MODULE:FACTORY`."""

from holdfast.bayeux.api import ServerApi
from holdfast.bayeux.extending.base import ServerExtension, SessionExtension
from holdfast.bayeux.rights import Denial, SecurityPolicy
from holdfast.bayeux.session import Session
from holdfast.bayeux.state.service_channels import ServiceCall
from holdfast.bayeux.wire.codec import Json


def services(server: ServerApi) -> None:
    """Remote calls: one that answers, one that fails, one that throws the caller out."""

    def echo(call: ServiceCall) -> None:
        call.answer(call.data)

    def fail(call: ServiceCall) -> None:
        call.fail(call.data)

    def eject(call: ServiceCall) -> None:
        server.end_by_server(call.session)

    server.services.add("/service/echo", echo)
    server.services.add("/service/fail", fail)
    server.services.add("/service/eject", eject)


def doorman(server: ServerApi) -> None:
    """Lets in who has a ticket, and nobody to the cellar."""
    server.rights.policy = Doorman()


class Doorman(SecurityPolicy):
    def can_handshake(self, session: Session, handshake: Json) -> Denial | None:
        ext = handshake.get("ext") or {}
        if ext.get("authentication") == {"ticket": "valid"}:
            return None
        return Denial(ext={"authentication": {"failed": True}})

    def can_subscribe(self, session: Session, channel: str, message: Json) -> Denial | None:
        return Denial("no_way_down") if channel.startswith("/cellar") else None


def greeter(server: ServerApi) -> None:
    """Has three messages for everybody who comes in."""
    server.extend(Greeter(server))


class Greeter(ServerExtension):
    def __init__(self, server: ServerApi) -> None:
        self._server = server

    def negotiate(
        self, session: Session, handshake: Json, reply: Json, now: float
    ) -> SessionExtension | None:
        for number in range(3):
            self._server.deliver_event(session, {"channel": "/greetings", "data": number})
        return None
