"""Receivers of messages."""

import re
from sys import intern
from typing import TYPE_CHECKING, Final

from holdfast.delivery.basics.session_states import (
    AWAY,
    GONE,
    OPEN,
    WITHOUT_CLIENT,
    SessionInput,
    SessionState,
    step,
)
from holdfast.delivery.basics.timers import Timed
from holdfast.delivery.messages.entries import SettledBy
from holdfast.delivery.queues.dispatcher import Dispatcher, DispatcherState
from holdfast.delivery.queues.queue import CallbackQueue

if TYPE_CHECKING:
    from holdfast.delivery.basics.feature_records import Records

_WRITTEN: Final = SettledBy.WRITTEN
NOBODY: Final = "anonymous"
# How the subjects of webhooks begin, before their names. Subjects of clients have no slash.
WEBHOOKS: Final = "webhook/"
WEBHOOK_NAME: Final = re.compile(r"[a-z][a-z0-9-]{0,30}")


class Receiver(Timed):
    """One receiver: a queue, a dispatcher and subscriptions."""

    __slots__ = (
        "dispatcher",
        "has_left",
        "is_away",
        "is_durable",
        "is_gone",
        "is_ready",
        "key",
        "name",
        "number",
        "queue",
        "records",
        "state",
        "subject",
        "subscriptions",
        "takes_messages",
        "transport",
    )

    def __init__(self, queue: CallbackQueue, number: int) -> None:
        super().__init__()
        self.queue = queue
        # Unique within this process. Identifies receivers that have no name.
        self.number = number
        self.subscriptions: set[str] = set()
        # The transport of the current or last connection; empty if there was none.
        self.transport = ""
        # The state and two facts that follow from it, which every message needs. Only `advance`
        # changes them.
        self.state = SessionState.HANDSHAKEN
        # Whether messages may enter the queue, whether the receiver has ended, and whether its
        # client is absent.
        self.takes_messages, self.is_gone = True, False
        self.has_left = self.is_away = False
        # Created when first needed. Without one, the receiver counts as ALIVE and active. The
        # dispatcher is DEAD if and only if the receiver takes no messages.
        self.dispatcher: Dispatcher | None = None
        # Whether the queue is stored.
        self.is_durable = False
        # What single features know of it, see `feature_records`; None if none of them does.
        self.records: Records | None = None
        # Whether the hub will look at the queue when this turn ends.
        self.is_ready = False
        self.go_by(f"{NOBODY}/-{number}")

    def go_by(self, key: str) -> None:
        """Set the session name: `joe/1`, or one that the server chose."""
        self.key = key
        # The subject that the receiver belongs to.
        self.subject = intern(key.rpartition("/")[0])
        # The absolute name, as other clients see it.
        self.name = f"client/{key}"

    def advance(self, seen: SessionInput) -> None:
        """Change the state. Raises `IllegalTransition`."""
        self.state = state = step(self.state, seen)
        self.takes_messages = state in OPEN
        self.is_gone = state in GONE
        self.has_left = state in WITHOUT_CLIENT
        self.is_away = state in AWAY
        dispatcher = self.dispatcher
        if dispatcher is not None:
            if not self.takes_messages:
                dispatcher.end()
            elif dispatcher.is_dead:
                # DEAD is final, so the next client gets a new one.
                self.dispatcher = None

    @property
    def takes_addressed(self) -> bool:
        """Whether messages addressed to it or to its subject may enter the queue."""
        return self.takes_messages

    def gets_next_at_once(self) -> bool:
        """Return whether it waits for messages, and gets the next ones as soon as they are here."""
        return False

    @property
    def is_live(self) -> bool:
        """Whether its queue flows: it is not away, not held back and not POLLING."""
        dispatcher = self.dispatcher
        return (
            self.takes_messages
            and not self.is_away
            and (
                dispatcher is None
                or (dispatcher.state is DispatcherState.ALIVE and dispatcher.hold_record is None)
            )
        )

    @property
    def has_shared_queue(self) -> bool:
        """Whether its queue is the shared queue of a subject or of a work queue."""
        return self.key.endswith("/0")

    @property
    def leaves_letters(self) -> bool:
        """Whether messages that it no longer takes become dead letters."""
        return not self.takes_messages and self.state is not SessionState.ENDED

    @property
    def may_return(self) -> bool:
        """Whether the client of the ended session should start a new one."""
        return self.state is SessionState.FAILED

    @property
    def connection_state(self) -> DispatcherState:
        """The state as shown to operators. docs/reference/sessions.md has the table."""
        if not self.takes_messages:
            return DispatcherState.DEAD
        if self.is_away:
            return DispatcherState.UNDEF
        state = DispatcherState.ALIVE if self.dispatcher is None else self.dispatcher.state
        if state is DispatcherState.ALIVE and self.state is SessionState.HANDSHAKEN:
            # Nothing is wrong, but the client has not connected yet.
            return DispatcherState.UNDEF
        return state

    @property
    def person(self) -> str:
        """The person behind the receiver, who may have several receivers."""
        return self.key if self.subject == NOBODY else self.subject

    @property
    def can_refuse(self) -> bool:
        """Whether the receiver acks or gives verdicts."""
        return self.queue.settling is not _WRITTEN

    def flows(self, now: float) -> bool:
        """Return whether entries may be handed over now."""
        return self.dispatcher is None or self.dispatcher.flows(now)
