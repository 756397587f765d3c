"""`/service/presence`: clients ask who is on a channel, within their rights."""

from collections.abc import Generator, Mapping
from functools import partial
from typing import Any, Final

from holdfast.bayeux.limits.budgets import Budgets
from holdfast.bayeux.rights import Rights
from holdfast.bayeux.session import Session
from holdfast.bayeux.state.presence_events import PresenceEvents, member_of
from holdfast.bayeux.state.service_channels import FEW, ILLEGAL, CallInvalid, ServiceCall, limit_of
from holdfast.delivery.basics.channels import Channels, Kind
from holdfast.delivery.routing.presence import Presence

PRESENCE_SERVICE: Final = "/service/presence"
_OPTIONS: Final = frozenset(("channel", "limit", "after"))


class PresenceService:
    """Answers calls of `/service/presence`: `{channel}`, with `limit` and `after`."""

    def __init__(
        self,
        presence: Presence[Session],
        events: PresenceEvents,
        *,
        channels: Channels,
        rights: Rights,
        budgets: Budgets,
    ) -> None:
        self._presence = presence
        self._events = events
        self._channels = channels
        self._rights = rights
        self._budgets = budgets

    def serve(self, call: ServiceCall) -> None:
        """Answer the call. Raises `Refused` if the client lacks the right."""
        try:
            self._show(call)
        except CallInvalid as invalid:
            call.fail(invalid.to_json())

    def _show(self, call: ServiceCall) -> None:
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
        shown = partial(
            self._shown, call.session, call.now, name=channel.name, after=after, limit=limit
        )
        call.answer(call.carry_out(shown))

    def _shown(
        self, session: Session, now: float, *, name: str, after: int, limit: int
    ) -> Generator[None, None, dict[str, Any]]:
        answer: dict[str, Any] = {
            "channel": name,
            "count": self._events.count(self._presence, name),
        }
        if limit:
            found = self._events.page(self._presence, name, after, limit + 1)
            page = found[:limit]
            self._budgets.spend_answer(session, len(page), now)
            members: list[dict[str, Any]] = []
            for start in range(0, len(page), FEW):
                members += [member_of(*each) for each in page[start : start + FEW]]
                yield
            answer["members"] = members
            # As text, because JavaScript's numbers are not exact enough.
            answer["next"] = str(page[-1][1]) if len(found) > limit else None
        return answer


def _after(given: Mapping[str, Any]) -> int:
    after = given.get("after")
    if after is None:
        return 0
    # Longer ones are not timestamps.
    if not isinstance(after, str) or not after.isascii() or not after.isdigit() or len(after) > 20:
        raise CallInvalid(ILLEGAL, "after must be the `next` of an earlier answer")
    return int(after)
