"""The server's part of the chat demo: who is in which room, and words for one person alone.

Rooms are channels, `/chat/room/NAME`, and need nothing of this. Who has subscribed to one publishes
`{name}` to `/service/chat/here`; the answer has its rooms, and everybody in them hears on
`/chat/members/NAME`, where nobody else may publish, who is there, who is away or held back, and how
much waits for them; of a crowd some, and how many the others are. Data for `/service/chat/private`
is `{id, to, text}`; it reaches all sessions of that name, and its sender with how many those were.
"""

import re
from collections.abc import Callable, Iterable
from heapq import nsmallest
from itertools import chain, islice
from typing import Any

from app.bayeux.codec import Json
from app.bayeux.errors import BayeuxError, Refused
from app.bayeux.extension import ServerExtension, SessionExtension
from app.bayeux.qos import Qos
from app.bayeux.server import Bayeux
from app.bayeux.services import Call
from app.bayeux.sessions import Session
from app.delivery.receivers import NOBODY

HERE = "/service/chat/here"
PRIVATE = "/service/chat/private"
ROOMS = "/chat/room/"
MEMBERS = "/chat/members/"
UNKNOWN = "user.ptp.unknownDestination"

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9.@+~-]{1,62}")
_LONGEST_TEXT = 4000
_LOOK_S = 0.5
# A look is at all, and what is new goes to all: many people are looked at less often.
_MOST_A_LOOK = 500
# Of one session; in more it is not shown.
_MOST_ROOMS = 50
# Of one room by name.
_MOST_NAMED = 200
# Who has no connect held in so many looks is away: between two connects nobody has.
_PATIENCE = 8
# Who is away need not hear later who was there meanwhile.
_LIFE_MS = 5000
_MOST_COUNTED = 1000

Wait = Callable[[float, Callable[[float], None]], None]


class Chat(ServerExtension):
    """Knows who chats.

    Args:
        wait: Waits so many seconds, and calls back with the time.
    """

    def __init__(self, bayeux: Bayeux, wait: Wait) -> None:
        self._bayeux = bayeux
        self._wait = wait
        # How many looks ago each was seen.
        self._unseen: dict[Session, int] = {}
        self._told: dict[str, Json] = {}
        self._is_looking = False
        bayeux.channels.reserve(MEMBERS)
        bayeux.services.add(HERE, self._welcome)
        bayeux.services.add(PRIVATE, self._whisper)

    def resume(self, session: Session, now: float) -> SessionExtension | None:
        """Until it connects it is away; nobody is told before the first comes and says so."""
        if session.subject != NOBODY:
            self._unseen[session] = _PATIENCE
        return None

    def _welcome(self, call: Call) -> None:
        session = call.session
        name = call.data.get("name") if isinstance(call.data, dict) else None
        if session.subject == NOBODY:
            if not isinstance(name, str) or not _NAME.fullmatch(name):
                raise Refused(BayeuxError.PUBLISH_DENIED, "name")
            # Who may not have a session of this name may not get its bearer's private words.
            self._bayeux.rights.check_name(session, name, 0, call.message)
            session.attributes = {**(session.attributes or {}), "chat": name}
        self._unseen[session] = 0
        rooms = _rooms(session)
        call.answer({"rooms": rooms})
        for room in rooms:
            # A newcomer has not heard who is there, even if nothing has changed.
            self._told.pop(room, None)
        # One look is for all who came, however many and however often: it costs what all cost.
        self._look_soon()

    def _look_soon(self) -> None:
        if not self._is_looking:
            self._is_looking = True
            self._wait(_LOOK_S * (1 + len(self._unseen) // _MOST_A_LOOK), self._look_again)

    def _look_again(self, now: float) -> None:
        self._is_looking = False
        self._bayeux.now = now
        self._look(now)

    def _look(self, now: float) -> None:
        """Tell each room who is in it, if that is new."""
        rooms: dict[str, list[Session]] = {}
        for session, unseen in list(self._unseen.items()):
            own = [] if session.is_gone else _rooms(session)
            if not own:
                del self._unseen[session]
            else:
                self._unseen[session] = 0 if session.held is not None else unseen + 1
            for room in own:
                rooms.setdefault(room, []).append(session)
        for room, sessions in rooms.items():
            self._tell(room, sessions)
        for room in self._told.keys() - rooms.keys():
            del self._told[room]
        if rooms:
            self._look_soon()

    def _tell(self, room: str, sessions: list[Session]) -> None:
        news = self._news(sessions)
        if self._told.get(room) == news:
            return
        self._told[room] = news
        channel = self._bayeux.channels.get(MEMBERS + room)
        if channel is not None:
            event: Json = {"channel": channel.name, "data": news}
            qos = Qos(persistent=False, life_ms=_LIFE_MS, force_destroy=True)
            self._bayeux.broadcast(channel, event, qos=qos)

    def _news(self, sessions: Iterable[Session]) -> Json:
        """Each name once, as what is best known of its sessions."""
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

    def _whisper(self, call: Call) -> None:
        sender = call.session
        data = call.data if isinstance(call.data, dict) else {}
        told: dict[str, Any] = {key: data.get(key) for key in ("id", "to", "text")}
        texts = [value for value in told.values() if isinstance(value, str)]
        is_fit = len(texts) == len(told) and max(map(len, texts)) <= _LONGEST_TEXT
        if sender not in self._unseen or not is_fit:
            raise Refused(BayeuxError.PUBLISH_DENIED, "private")
        receivers = [each for each in self._unseen if _name(each) == told["to"]]
        receivers = [each for each in receivers if not each.is_gone]
        if not receivers:
            call.fail({**told, "error": UNKNOWN})
            return
        told["from"] = _name(sender)
        for each in receivers:
            if each is not sender:
                self._bayeux.deliver_event(each, {"channel": PRIVATE, "data": told})
        call.answer({**told, "receivers": len(receivers)})


def _name(session: Session) -> str:
    """A session's subject; what it said of itself, if it has none."""
    if session.subject != NOBODY:
        return session.subject
    return str((session.attributes or {}).get("chat", NOBODY))


def _waiting(session: Session) -> int:
    """How many words wait; who is in a room is news, and would wait because it is told."""
    queue = session.queue
    entries = (entry.message for entry in (*queue.handed.values(), *queue.returned.values()))
    messages = islice(chain(entries, queue.waiting), _MOST_COUNTED)
    return sum(each.channel == PRIVATE or each.channel.startswith(ROOMS) for each in messages)


def _rooms(session: Session) -> list[str]:
    names = (name[len(ROOMS) :] for name in session.subscriptions if name.startswith(ROOMS))
    return list(islice((name for name in names if "*" not in name), _MOST_ROOMS))
