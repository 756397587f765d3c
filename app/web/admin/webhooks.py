"""The resource of webhooks."""

from dataclasses import dataclass
from enum import Enum
from operator import attrgetter
from typing import Annotated

from pydantic import Field

from holdfast.bayeux.session import Session
from holdfast.bayeux.state.webhook_figures import CallOutcome
from holdfast.delivery.queues.dispatcher import DispatcherState
from holdfast.delivery.queues.receivers import WEBHOOKS
from holdfast.store.format.operator_input import Count, Ms, values_of
from holdfast.web.admin.changes import RunningServer
from holdfast.web.admin.fields import Cursor, Limit
from holdfast.web.admin.route import route
from holdfast.web.admin.sorting import Stretches, sortable, stretches_of
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

    def _all(self) -> Stretches[Webhook]:
        return stretches_of(self._sessions(), self._view)

    @route("GET", "/webhooks")
    @sortable("name", _all)
    async def webhooks(self, cursor: Cursor = None, limit: Limit = 100) -> Page[Webhook]:
        """List webhooks, and removed ones with messages: by name, or by a field."""
        found = sorted(map(self._view, self._sessions()), key=attrgetter("name"))
        rest = [each for each in found if each.name > (cursor or "")]
        return Page(rest[:limit], rest[limit - 1].name if len(rest) > limit else None)

    def _sessions(self) -> list[Session]:
        return list(self._state.sessions.names.of_server.values())

    def _view(self, session: Session) -> Webhook:
        name = session.subject.removeprefix(WEBHOOKS)
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
