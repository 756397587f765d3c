"""The server side of the chat demo: the rooms of a session, and private messages.

Rooms are the channels `/chat/room/NAME`; presence tells who is in them. A publish to
`/service/chat/rooms` is answered with the rooms of the session, which may be from an earlier visit.
A publish of `{id, to, text}` to `/service/chat/private` reaches all sessions of the subject `to`
that are in a room; the sender is answered with their number.
"""

from itertools import islice
from typing import Any

from holdfast.bayeux.api import ServerApi
from holdfast.bayeux.session import Session
from holdfast.bayeux.state.service_channels import ServiceCall
from holdfast.bayeux.wire.errors import ErrorReply, Refused
from holdfast.delivery.queues.receivers import NOBODY

ROOMS = "/chat/room/"
LIST = "/service/chat/rooms"
PRIVATE = "/service/chat/private"
UNKNOWN = "user.ptp.unknownDestination"
# With several workers: the one with the sessions of the subject cannot be reached.
AWAY = "resource.cluster.notAvailable"

_LONGEST_TEXT = 4000
# How many rooms the session is informed about.
_MOST_ROOMS = 50


class Chat:
    """Offers the chat's services."""

    def __init__(self, server: ServerApi) -> None:
        self._server = server
        server.offer_presence(ROOMS + "*")
        server.services.add(LIST, self._list)
        server.services.add(PRIVATE, self._whisper)
        server.serve_subjects(PRIVATE, self._deliver)

    def _list(self, call: ServiceCall) -> None:
        call.answer({"rooms": _rooms(call.session)})

    def _whisper(self, call: ServiceCall) -> None:
        sender = call.session
        data = call.data if isinstance(call.data, dict) else {}
        whisper: dict[str, Any] = {key: data.get(key) for key in ("id", "to", "text")}
        texts = [value for value in whisper.values() if isinstance(value, str)]
        is_fit = len(texts) == len(whisper) and max(map(len, texts)) <= _LONGEST_TEXT
        if sender.subject == NOBODY or not _rooms(sender) or not is_fit:
            raise Refused(ErrorReply.PUBLISH_DENIED, "private")
        told = {**whisper, "from": sender.subject}

        def answer(receivers: int | None) -> None:
            if receivers:
                call.answer({**told, "receivers": receivers})
            else:
                call.fail({**whisper, "error": AWAY if receivers is None else UNKNOWN})

        if not self._server.ask_about(whisper["to"], PRIVATE, told, answer):
            answer(self._deliver(told, sender))

    def _deliver(self, whisper: dict[str, Any], sender: Session | None = None) -> int:
        """Deliver a private message to a subject's sessions. Returns their number."""
        receivers = [
            each for each in self._server.sessions.of_subject(whisper["to"]) if _rooms(each)
        ]
        for each in receivers:
            if each is not sender:
                self._server.deliver_event(each, {"channel": PRIVATE, "data": whisper})
        return len(receivers)


def _rooms(session: Session) -> list[str]:
    names = (name[len(ROOMS) :] for name in session.subscriptions if name.startswith(ROOMS))
    return list(islice((name for name in names if "*" not in name), _MOST_ROOMS))
