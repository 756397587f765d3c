"""Applications inside the server, for the clients to talk with: `--extension MODULE:FACTORY`."""

from app.bayeux.codec import Json
from app.bayeux.extension import ServerExtension, SessionExtension
from app.bayeux.rights import Denial, SecurityPolicy
from app.bayeux.server import Bayeux
from app.bayeux.services import Call
from app.bayeux.sessions import Session


def services(bayeux: Bayeux) -> None:
    """Remote calls: one that answers, one that fails, one that throws the caller out."""

    def echo(call: Call) -> None:
        call.answer(call.data)

    def fail(call: Call) -> None:
        call.fail(call.data)

    def eject(call: Call) -> None:
        bayeux.end_by_server(call.session)

    bayeux.services.add("/service/echo", echo)
    bayeux.services.add("/service/fail", fail)
    bayeux.services.add("/service/eject", eject)


def doorman(bayeux: Bayeux) -> None:
    """Lets in who has a ticket, and nobody to the cellar."""
    bayeux.rights.policy = Doorman()


class Doorman(SecurityPolicy):
    def can_handshake(self, session: Session, handshake: Json) -> Denial | None:
        ext = handshake.get("ext") or {}
        if ext.get("authentication") == {"ticket": "valid"}:
            return None
        return Denial(ext={"authentication": {"failed": True}})

    def can_subscribe(self, session: Session, channel: str, message: Json) -> Denial | None:
        return Denial("no_way_down") if channel.startswith("/cellar") else None


def greeter(bayeux: Bayeux) -> None:
    """Has three messages for everybody who comes in."""
    bayeux.extend(Greeter(bayeux))


class Greeter(ServerExtension):
    def __init__(self, bayeux: Bayeux) -> None:
        self._bayeux = bayeux

    def negotiate(
        self, session: Session, handshake: Json, reply: Json, now: float
    ) -> SessionExtension | None:
        for number in range(3):
            self._bayeux.deliver_event(session, {"channel": "/greetings", "data": number})
        return None
