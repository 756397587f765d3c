"""The server side of the chat demo: room members and private messages.

Rooms are the channels `/chat/room/NAME` and need no server code. To join, a client subscribes to
rooms and publishes `{name}` to `/service/chat/here`; the answer lists its rooms. The server then
publishes to `/chat/members/NAME`, where clients may not publish: who is here, away or held back,
and how many messages wait for each. Large rooms list some members and the number of the others.
A publish of `{id, to, text}` to `/service/chat/private` reaches all sessions with the name `to`;
the sender is answered with their number.
"""

import re
from collections.abc import Callable, Iterable
from heapq import nsmallest
from itertools import chain, islice
from typing import Any

from holdfast.bayeux.api import ServerApi
from holdfast.bayeux.codec import Json
from holdfast.bayeux.errors import ErrorReply, Refused
from holdfast.bayeux.extension import ServerExtension, SessionExtension
from holdfast.bayeux.qos import Qos
from holdfast.bayeux.services import ServiceCall
from holdfast.bayeux.sessions import Session
from holdfast.delivery.receivers import NOBODY

HERE = "/service/chat/here"
PRIVATE = "/service/chat/private"
ROOMS = "/chat/room/"
MEMBERS = "/chat/members/"
UNKNOWN = "user.ptp.unknownDestination"

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9.@+~-]{1,62}")
_LONGEST_TEXT = 4000
_LOOK_S = 0.5
# Each look visits all members, and changes go to all: with many members, looks are less frequent.
_MOST_A_LOOK = 500
# Rooms per session; the session is not listed in further ones.
_MOST_ROOMS = 50
# Members listed by name in a room.
_MOST_NAMED = 200
# Looks without a held connect after which a member is away: there is none between two connects.
_PATIENCE = 8
# Member lists are useless to a client that returns later.
_LIFE_MS = 5000
_MOST_COUNTED = 1000

Wait = Callable[[float, Callable[[float], None]], None]


class Chat(ServerExtension):
    """Tracks who is in which chat room.

    Args:
            wait: Calls back with the time after this number of seconds.
    """

    def __init__(self, server: ServerApi, wait: Wait) -> None:
        self._server = server
        self._wait = wait
        # The number of looks since each session was last seen.
        self._unseen: dict[Session, int] = {}
        self._published: dict[str, Json] = {}
        self._is_looking = False
        server.channels.reserve(MEMBERS)
        server.services.add(HERE, self._welcome)
        server.services.add(PRIVATE, self._whisper)

    def resume(self, session: Session, now: float) -> SessionExtension | None:
        """A resumed session is away until it connects. The first that does triggers the lists."""
        if session.subject != NOBODY:
            self._unseen[session] = _PATIENCE
        return None

    def _welcome(self, call: ServiceCall) -> None:
        session = call.session
        name = call.data.get("name") if isinstance(call.data, dict) else None
        if session.subject == NOBODY:
            if not isinstance(name, str) or not _NAME.fullmatch(name):
                raise Refused(ErrorReply.PUBLISH_DENIED, "name")
            # The name receives private messages: only a client that may have the name gets them.
            self._server.rights.check_name(session, name, 0, call.message)
            session.attributes = {**(session.attributes or {}), "chat": name}
        self._unseen[session] = 0
        rooms = _rooms(session)
        call.answer({"rooms": rooms})
        for room in rooms:
            # Newcomers need the list even if it has not changed.
            self._published.pop(room, None)
        # One look serves everyone who arrived since the last: its cost is that of all members.
        self._look_soon()

    def _look_soon(self) -> None:
        if not self._is_looking:
            self._is_looking = True
            self._wait(_LOOK_S * (1 + len(self._unseen) // _MOST_A_LOOK), self._look_again)

    def _look_again(self, now: float) -> None:
        self._is_looking = False
        self._look(now)

    def _look(self, now: float) -> None:
        """Publish the members of each room whose list has changed."""
        rooms: dict[str, list[Session]] = {}
        for session, unseen in list(self._unseen.items()):
            own = [] if session.is_gone else _rooms(session)
            if not own:
                del self._unseen[session]
            else:
                self._unseen[session] = 0 if session.held_connect is not None else unseen + 1
            for room in own:
                rooms.setdefault(room, []).append(session)
        for room, sessions in rooms.items():
            self._publish(room, sessions)
        for room in self._published.keys() - rooms.keys():
            del self._published[room]
        if rooms:
            self._look_soon()

    def _publish(self, room: str, sessions: list[Session]) -> None:
        news = self._news(sessions)
        if self._published.get(room) == news:
            return
        self._published[room] = news
        if self._server.channels.get(MEMBERS + room) is not None:
            qos = Qos(persistent=False, life_ms=_LIFE_MS, force_destroy=True)
            self._server.publish(MEMBERS + room, news, qos=qos)

    def _news(self, sessions: Iterable[Session]) -> Json:
        """One row per name, with the state of its most recently seen session."""
        best: dict[str, Session] = {}
        for session in sorted(sessions, key=self._unseen.__getitem__, reverse=True):
            best[_name(session)] = session
        named = nsmallest(_MOST_NAMED, best)
        members = [self._member(name, best[name]) for name in named]
        return {"members": members, "others": len(best) - len(named)}

    def _member(self, name: str, session: Session) -> Json:
        state = self._state(session)
        waiting = 0 if state == "here" else _waiting(session)
        return {"name": name, "state": state, "waiting": waiting}

    def _state(self, session: Session) -> str:
        if session.dispatcher is not None and not session.dispatcher.is_active:
            return "held"
        return "away" if session.has_left or self._unseen[session] >= _PATIENCE else "here"

    def _whisper(self, call: ServiceCall) -> None:
        sender = call.session
        data = call.data if isinstance(call.data, dict) else {}
        whisper: dict[str, Any] = {key: data.get(key) for key in ("id", "to", "text")}
        texts = [value for value in whisper.values() if isinstance(value, str)]
        is_fit = len(texts) == len(whisper) and max(map(len, texts)) <= _LONGEST_TEXT
        if sender not in self._unseen or not is_fit:
            raise Refused(ErrorReply.PUBLISH_DENIED, "private")
        receivers = [each for each in self._unseen if _name(each) == whisper["to"]]
        receivers = [each for each in receivers if not each.is_gone]
        if not receivers:
            call.fail({**whisper, "error": UNKNOWN})
            return
        whisper["from"] = _name(sender)
        for each in receivers:
            if each is not sender:
                self._server.deliver_event(each, {"channel": PRIVATE, "data": whisper})
        call.answer({**whisper, "receivers": len(receivers)})


def _name(session: Session) -> str:
    """Return the session's subject, or else the name that the client gave."""
    if session.subject != NOBODY:
        return session.subject
    return str((session.attributes or {}).get("chat", NOBODY))


def _waiting(session: Session) -> int:
    """Return the number of waiting chat messages; member lists do not count."""
    queue = session.queue
    entries = (entry.message for entry in queue.tried())
    messages = islice(chain(entries, queue.waiting), _MOST_COUNTED)
    return sum(each.channel == PRIVATE or each.channel.startswith(ROOMS) for each in messages)


def _rooms(session: Session) -> list[str]:
    names = (name[len(ROOMS) :] for name in session.subscriptions if name.startswith(ROOMS))
    return list(islice((name for name in names if "*" not in name), _MOST_ROOMS))
