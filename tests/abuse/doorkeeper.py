"""An application that takes rights back: `--extension tests.abuse.doorkeeper:install`."""

from app.bayeux.codec import Json
from app.bayeux.rights import Denial, SecurityPolicy
from app.bayeux.server import Bayeux
from app.bayeux.services import Call
from app.bayeux.sessions import Session

# By the number of the session: it may not see what is secret any more.
_barred: set[int] = set()


class Doorkeeper(SecurityPolicy):
    def can_subscribe(self, session: Session, channel: str, message: Json) -> Denial | None:
        is_secret = channel.startswith("/secret/") or channel == "/**"
        return Denial("no_more") if is_secret and session.number in _barred else None


def install(bayeux: Bayeux) -> None:
    """Whoever knows a client id may have that session lose its rights, or end it."""

    def session_of(call: Call) -> Session:
        session = bayeux.sessions.of_client(str(call.data))
        assert session is not None
        return session

    def bar(call: Call) -> None:
        session = session_of(call)
        _barred.add(session.number)
        bayeux.reauthorize(session)

    def end(call: Call) -> None:
        bayeux.end_by_server(session_of(call))

    bayeux.rights.policy = Doorkeeper()
    bayeux.services.add("/service/bar", bar)
    bayeux.services.add("/service/end", end)
