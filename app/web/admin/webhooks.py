"""The resource of webhooks."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Annotated

from pydantic import Field

from holdfast.bayeux.session import Session
from holdfast.bayeux.sessions.of_server import webhook_of
from holdfast.bayeux.state.webhook_figures import CallOutcome
from holdfast.delivery.queues.dispatcher import DispatcherState
from holdfast.store.format.operator_input import Count, Ms, values_of
from holdfast.web.admin.changes import RunningServer
from holdfast.web.admin.fields import Cursor, Limit
from holdfast.web.admin.route import route
from holdfast.web.admin.views import Page


class WebhookState(Enum):
    """Whether a webhook is called now."""

    FLOWS = "flows"
    # Until the next attempt.
    WAITS = "waits"
    HELD = "held"
    # The settings do not have it any more.
    REMOVED = "removed"


@dataclass(frozen=True, slots=True)
class Webhook:
    """A webhook, or what a removed one has left."""

    name: str
    url: Annotated[str, Field(description="Without the path, which may be secret.")]
    state: Annotated[WebhookState, values_of(WebhookState)]
    waiting: Annotated[Count, Field(description="Messages that are not settled.")]
    delivered: Annotated[Count, Field(description="Calls with success since the start.")]
    failed: Annotated[Count, Field(description="Calls without success since the start.")]
    failure: Annotated[str, Field(description="What the last of these was answered.")]
    failed_at: Ms | None


class WebhookResource:
    """Answers requests about webhooks."""

    def __init__(self, server: RunningServer) -> None:
        self._state = server.life.state

    @route("GET", "/webhooks")
    async def webhooks(self, cursor: Cursor = None, limit: Limit = 100) -> Page[Webhook]:
        """List webhooks, and removed ones with messages, by name."""
        found = sorted(self._all(), key=lambda each: each.name)
        rest = [each for each in found if each.name > (cursor or "")]
        return Page(rest[:limit], rest[limit - 1].name if len(rest) > limit else None)

    def _all(self) -> Iterator[Webhook]:
        for session in self._state.sessions.names.of_server.values():
            name = webhook_of(session)
            if name is not None:
                yield self._view(name, session)

    def _view(self, name: str, session: Session) -> Webhook:
        figures = self._state.webhooks.get(name)
        state, waiting = _state_of(session), session.queue.count
        if figures is None:
            return Webhook(name, "", WebhookState.REMOVED, waiting, 0, 0, "", None)
        delivered = figures.calls[CallOutcome.DELIVERED]
        failed = figures.calls.total() - delivered
        return Webhook(
            *(name, figures.origin, state, waiting, delivered, failed),
            *(figures.failure, figures.failed_ms),
        )


def _state_of(session: Session) -> WebhookState:
    dispatcher = session.dispatcher
    if dispatcher is None:
        return WebhookState.FLOWS
    if not dispatcher.is_active:
        return WebhookState.HELD
    is_polling = dispatcher.state is DispatcherState.POLLING
    return WebhookState.WAITS if is_polling else WebhookState.FLOWS
