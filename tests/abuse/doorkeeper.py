"""An application that takes rights back: `--extension tests.abuse.doorkeeper:install`."""

from holdfast.bayeux.api import ServerApi
from holdfast.bayeux.rights import Denial, SecurityPolicy
from holdfast.bayeux.session import Session
from holdfast.bayeux.state.service_channels import ServiceCall
from holdfast.bayeux.wire.codec import Json

# The numbers of sessions that may no longer subscribe to secret channels.
_barred: set[int] = set()


class Doorkeeper(SecurityPolicy):
    def can_subscribe(self, session: Session, channel: str, message: Json) -> Denial | None:
        is_secret = channel.startswith("/secret/") or channel == "/**"
        return Denial("no_more") if is_secret and session.number in _barred else None


def install(server: ServerApi) -> None:
    """Services by which anybody who knows a client id takes that session's rights, or ends it."""

    def session_of(call: ServiceCall) -> Session:
        return next(each for each in server.sessions if each.client_id == call.data)

    def bar(call: ServiceCall) -> None:
        session = session_of(call)
        _barred.add(session.number)
        server.reauthorize(session)

    def end(call: ServiceCall) -> None:
        server.end_by_server(session_of(call))

    server.rights.policy = Doorkeeper()
    server.services.add("/service/bar", bar)
    server.services.add("/service/end", end)
