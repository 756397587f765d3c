"""A club: members need a ticket, only officers publish announcements, and rates are limited.

A member who refuses an announcement with "asleep" gets it again later.

Run it from the top of the source tree:

    .venv/bin/holdfast serve --extension docs.examples.club:install
"""

from typing import ClassVar

from holdfast import (
    Denial,
    Dispatcher,
    ErrorReply,
    Failure,
    ForMessage,
    ForRest,
    Json,
    Operation,
    Reaction,
    Refused,
    SecurityPolicy,
    ServerApi,
    ServerExtension,
    ServiceCall,
    SessionApi,
    SessionExtension,
    Vote,
)

MEMBERS = {"t-1815": "ada", "t-1906": "grace"}
MESSAGES_PER_SECOND = 10
NAP_S = 0.5


def name_of(session: SessionApi) -> str | None:
    """The member's name, which `Door` has set."""
    return (session.attributes or {}).get("name")


def ticket_in(handshake: Json) -> str:
    return str((handshake.get("ext") or {}).get("ticket"))


class Door(ServerExtension):
    """Requires a ticket from every client: `ext.ticket` of its handshake."""

    # Only the client and this extension exchange this key; no receiver of a message sees it.
    owns: ClassVar[frozenset[str]] = frozenset({"ticket"})

    async def negotiate(
        self, session: SessionApi, handshake: Json, reply: Json, now: float
    ) -> SessionExtension | None:
        name = await self._look_up(ticket_in(handshake))
        if name is None:
            advice = {"reconnect": "none", "interval": 0, "timeout": 0}
            raise Refused(ErrorReply.HANDSHAKE_DENIED, "no_ticket", advice=advice)
        session.attributes = {"name": name}
        reply.setdefault("ext", {})["name"] = name
        return Pace()

    async def _look_up(self, ticket: str) -> str | None:
        """Stands for a query to a database; the client waits for its result."""
        return MEMBERS.get(ticket)

    def resume(self, session: SessionApi, now: float) -> SessionExtension | None:
        """After a restart there is no ticket, but `can_claim` has checked the session's name."""
        session.attributes = {"name": session.subject}
        return Pace()


class Pace(SessionExtension):
    """Drops messages beyond the rate of one client. Each session has its own."""

    def __init__(self) -> None:
        self._second = 0
        self._said = 0

    def incoming(self, session: SessionApi, message: Json, now: float) -> bool:
        if message["channel"].startswith("/meta/"):
            return True
        if int(now) != self._second:
            self._second, self._said = int(now), 0
        self._said += 1
        return self._said <= MESSAGES_PER_SECOND


class Rooms(SecurityPolicy):
    """Allows only members' names for sessions, and only channels of rooms and announcements."""

    def can_claim(
        self, session: SessionApi, subject: str, number: int, handshake: Json
    ) -> Denial | None:
        is_own = MEMBERS.get(ticket_in(handshake)) == subject
        return None if is_own else Denial("not_your_name")

    def can_create(self, session: SessionApi, channel: str, message: Json) -> Denial | None:
        is_known = channel.startswith(("/rooms/", "/announcements/"))
        return None if is_known else Denial("no_such_room")


def announcements(
    operation: Operation, channel: str, session: SessionApi, message: Json
) -> Vote | Denial:
    """Everybody may subscribe; only ada may publish."""
    if operation is Operation.PUBLISH and name_of(session) != "ada":
        return Denial("officers_only")
    return Vote.GRANT


class Sleepers:
    """Redelivers a message half a second after a refusal with the text "asleep"."""

    def react(self, failure: Failure, dispatcher: Dispatcher, now: float) -> Reaction | None:
        if failure.code.family != "user" or failure.text != "asleep":
            return None
        return Reaction(ForMessage.STAYS, ForRest.STAYS, counts_redelivered=True, pause_s=NAP_S)


def who_am_i(call: ServiceCall) -> None:
    """Called by `cometd.remoteCall("whoami", {}, 5000, (answer) => ...)` of cometd.js."""
    call.answer({"name": name_of(call.session)})


def install(server: ServerApi) -> None:
    """Called once by `--extension`, before the server listens."""
    server.extend(Door())
    server.rights.policy = Rooms()
    server.rights.add("/announcements/**", announcements)
    server.error_handlers.add("/announcements/**", Sleepers())
    server.services.add("/service/whoami", who_am_i)
