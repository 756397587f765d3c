"""Requests: publishes whose receivers may answer.

A client that asks for `ext.request: true` in the handshake gets its reply channel in `ext.ret`. A
publish with `ext.replyTo` below that channel is a request; its receivers publish their replies to
the `replyTo` that they see. docs/reference/requests.md describes the rest.
"""

import re
from collections.abc import Mapping
from typing import Any, ClassVar

from holdfast.bayeux.api import ServerApi
from holdfast.bayeux.extending.base import ServerExtension, SessionExtension
from holdfast.bayeux.publish.point_to_point import is_ptp
from holdfast.bayeux.publish.requests import MODE, REPLY_TO, TIMEOUT
from holdfast.bayeux.session import Session
from holdfast.bayeux.wire.codec import Json
from holdfast.bayeux.wire.errors import ErrorReply, Refused
from holdfast.delivery.basics.channels import REPLIES, SERVICES
from holdfast.delivery.basics.json_text import whole
from holdfast.delivery.requests.request import ReplyMode

_HANDSHAKE = "/meta/handshake"
_MODES = frozenset(mode.value for mode in ReplyMode)
# The reply channel that a session had, perhaps with an earlier release. Nothing longer is stored.
_KEPT = re.compile(rf"{REPLIES}(?:[A-Za-z0-9_-]{{22}}|[A-Za-z0-9_-]{{29}})")


class Request(ServerExtension):
    """Gives clients reply channels."""

    owns: ClassVar[frozenset[str]] = frozenset({MODE, REPLY_TO, TIMEOUT})

    def __init__(self, server: ServerApi) -> None:
        self._server = server
        server.offer_requests()

    def check(self, message: Json) -> None:
        if message["channel"] == _HANDSHAKE:
            wrong = _wrong_in_handshake(message["ext"])
        else:
            wrong = self._wrong(message["channel"], message["ext"])
        if wrong:
            raise Refused(ErrorReply.EXT_INVALID, "user.illegalArgument", wrong)

    def _wrong(self, channel: str, ext: Mapping[str, Any]) -> str:
        """Return the key that cannot be read, if there is one."""
        reply_to, timeout, mode = ext.get(REPLY_TO), ext.get(TIMEOUT), ext.get(MODE)
        asks = _is_used(reply_to)
        if asks and not (isinstance(reply_to, str) and reply_to and _may_ask(channel)):
            return REPLY_TO
        if _is_used(timeout):
            ms = whole(timeout)
            most = self._server.options.max_reply_timeout
            if not asks or ms is None or not 1 <= ms <= most:
                return TIMEOUT
        is_mode = asks and isinstance(mode, str) and mode in _MODES
        return MODE if _is_used(mode) and not is_mode else ""

    def negotiate(
        self, session: Session, handshake: Json, reply: Json, now: float
    ) -> SessionExtension | None:
        asked = (handshake.get("ext") or {}).get(MODE)
        if _is_used(asked):
            self._server.give_reply_channel(session, asked if isinstance(asked, str) else "")
        return None


def _is_used(value: object) -> bool:
    return value is not None and value is not False


def _may_ask(channel: str) -> bool:
    """Return whether messages on the channel can ask: they have receivers."""
    is_for_server = channel.startswith(("/meta/", SERVICES)) and not is_ptp(channel)
    return not (is_for_server or channel.startswith(REPLIES))


def _wrong_in_handshake(ext: Mapping[str, Any]) -> str:
    for key in (REPLY_TO, TIMEOUT):
        if _is_used(ext.get(key)):
            return key
    asked = ext.get(MODE)
    is_read = asked is None or type(asked) is bool
    return "" if is_read or (isinstance(asked, str) and _KEPT.fullmatch(asked)) else MODE
