"""`/service/presence`: clients ask who is on a channel, as far as their rights go."""

from collections.abc import Mapping
from typing import Any, Final

from holdfast.bayeux.codec import Json
from holdfast.bayeux.presence_events import member_of
from holdfast.bayeux.rights import Rights
from holdfast.bayeux.services import ILLEGAL, CallInvalid, ServiceCall, limit_of
from holdfast.bayeux.sessions import Session
from holdfast.delivery.channels import Channels, Kind
from holdfast.delivery.presence import Presence

PRESENCE_SERVICE: Final = "/service/presence"
_OPTIONS: Final = frozenset(("channel", "limit", "after"))


class PresenceService:
    """Answers calls of `/service/presence`: `{channel}`, with `limit` and `after`."""

    def __init__(self, presence: Presence[Session], channels: Channels, rights: Rights) -> None:
        self._presence = presence
        self._channels = channels
        self._rights = rights

    def serve(self, call: ServiceCall) -> None:
        """Answer the call. Raises `Refused` if the client has not the right."""
        try:
            call.answer(self._members(call))
        except CallInvalid as invalid:
            call.fail(invalid.to_json())

    def _members(self, call: ServiceCall) -> Json:
        data = call.data
        given: Mapping[str, Any] = data if isinstance(data, Mapping) else {}
        if given.keys() - _OPTIONS:
            raise CallInvalid(ILLEGAL, "data has only channel, limit and after")
        name = given.get("channel")
        channel = self._channels.get(name) if isinstance(name, str) else None
        if channel is None or channel.kind is not Kind.BROADCAST or channel.is_wild:
            raise CallInvalid(
                ILLEGAL, "channel must be a single channel that clients can publish on"
            )
        self._rights.check_presence(call.session, channel, call.message)
        if not self._presence.is_visible(channel):
            raise CallInvalid(ILLEGAL, f"{channel.name} has no presence")
        limit, after = limit_of(given, least=0), _after(given)
        answer: Json = {"channel": channel.name, "count": self._presence.count(channel.name)}
        if limit:
            found = self._presence.page(channel.name, after, limit + 1)
            page = found[:limit]
            answer["members"] = [member_of(*each) for each in page]
            # As text: JavaScript's numbers are not exact enough.
            answer["next"] = str(page[-1][1]) if len(found) > limit else None
        return answer


def _after(given: Mapping[str, Any]) -> int:
    after = given.get("after")
    if after is None:
        return 0
    # Longer ones are no times.
    if not isinstance(after, str) or not after.isascii() or not after.isdigit() or len(after) > 20:
        raise CallInvalid(ILLEGAL, "after must be the `next` of an earlier answer")
    return int(after)
