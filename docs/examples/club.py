"""A club: members come in with a ticket, only officers make announcements, nobody shouts.

Who sleeps hears an announcement later.

It runs from the top of the source tree:

    .venv/bin/holdfast serve --extension docs.examples.club:install
"""

from typing import ClassVar

from app.bayeux.codec import Json
from app.bayeux.errors import BayeuxError, Refused
from app.bayeux.extension import ServerExtension, SessionExtension
from app.bayeux.rights import Denial, Operation, SecurityPolicy, Vote
from app.bayeux.server import Bayeux
from app.bayeux.services import Call
from app.bayeux.sessions import Session
from app.delivery.dispatcher import Dispatcher
from app.delivery.reactions import Failure, ForMessage, ForRest, Reaction

MEMBERS = {"t-1815": "ada", "t-1906": "grace"}
MESSAGES_PER_SECOND = 10
NAP_S = 0.5


def name_of(session: Session) -> str | None:
    """Who this is, as the door has noted it."""
    return (session.attributes or {}).get("name")


def ticket_in(handshake: Json) -> str:
    return str((handshake.get("ext") or {}).get("ticket"))


class Door(ServerExtension):
    """Asks every client for a ticket: `ext.ticket` of its handshake."""

    # Between the client and this extension: no receiver of a message sees it.
    owns: ClassVar[frozenset[str]] = frozenset({"ticket"})

    async def negotiate(
        self, session: Session, handshake: Json, reply: Json, now: float
    ) -> SessionExtension | None:
        name = await self._look_up(ticket_in(handshake))
        if name is None:
            advice = {"reconnect": "none", "interval": 0, "timeout": 0}
            raise Refused(BayeuxError.HANDSHAKE_DENIED, "no_ticket", advice=advice)
        session.attributes = {"name": name}
        reply.setdefault("ext", {})["name"] = name
        return Pace()

    async def _look_up(self, ticket: str) -> str | None:
        """What would be a question to a database; until it is answered the client waits."""
        return MEMBERS.get(ticket)

    def resume(self, session: Session, now: float) -> SessionExtension | None:
        """After a restart nobody shows a ticket: whose session it is was settled by its name."""
        session.attributes = {"name": session.subject}
        return Pace()


class Pace(SessionExtension):
    """Drops what one client says too fast. There is one of these for each session."""

    def __init__(self) -> None:
        self._second = 0
        self._said = 0

    def incoming(self, session: Session, message: Json, now: float) -> bool:
        if message["channel"].startswith("/meta/"):
            return True
        if int(now) != self._second:
            self._second, self._said = int(now), 0
        self._said += 1
        return self._said <= MESSAGES_PER_SECOND


class Rooms(SecurityPolicy):
    """Sessions have the names of members; there are rooms, announcements and no other channels."""

    def can_claim(
        self, session: Session, subject: str, number: int, handshake: Json
    ) -> Denial | None:
        is_own = MEMBERS.get(ticket_in(handshake)) == subject
        return None if is_own else Denial("not_your_name")

    def can_create(self, session: Session, channel: str, message: Json) -> Denial | None:
        is_known = channel.startswith(("/rooms/", "/announcements/"))
        return None if is_known else Denial("no_such_room")


def announcements(
    operation: Operation, channel: str, session: Session, message: Json
) -> Vote | Denial:
    """Everybody may listen; ada may speak."""
    if operation is Operation.PUBLISH and name_of(session) != "ada":
        return Denial("officers_only")
    return Vote.GRANT


class Sleepers:
    """Who refuses an announcement with the word "asleep" hears it a little later."""

    def react(self, failure: Failure, dispatcher: Dispatcher, now: float) -> Reaction | None:
        if failure.code.family != "user" or failure.text != "asleep":
            return None
        return Reaction(ForMessage.STAYS, ForRest.STAYS, counts_redelivered=True, pause_s=NAP_S)


def who_am_i(call: Call) -> None:
    """For cometd.js: `cometd.remoteCall("whoami", {}, 5000, (answer) => ...)`."""
    call.answer({"name": name_of(call.session)})


def install(bayeux: Bayeux) -> None:
    """What `--extension` calls, once, before the server listens."""
    bayeux.extend(Door())
    bayeux.rights.policy = Rooms()
    bayeux.rights.add("/announcements/**", announcements)
    bayeux.error_handlers.add("/announcements/**", Sleepers())
    bayeux.services.add("/service/whoami", who_am_i)
