"""The port to what decides about a failed delivery: the failure, and the reaction to it."""

from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from holdfast.delivery.basics.error_codes import ErrorCode
from holdfast.delivery.queues.dispatcher import Dispatcher, DispatcherInput


class ForMessage(Enum):
    """The reaction's effect on the message."""

    DEAD = "dead letter"
    STAYS = "stays"


class ForRest(Enum):
    """The reaction's effect on the rest of the queue."""

    FLOWS = "flows"
    STAYS = "stays"
    DEAD = "dead letters"


@dataclass(frozen=True, slots=True)
class Failure:
    """One failed delivery, reported by the client or detected by the server."""

    code: ErrorCode
    text: str
    delay_s: float | None = None
    channel: str = ""
    # How many times the message was handed over to this receiver.
    attempts: int = 1
    by_client: bool = True


@dataclass(frozen=True, slots=True)
class Reaction:
    """A row of the table. Nothing is handed over for `pause_s`."""

    message: ForMessage
    rest: ForRest
    input: DispatcherInput | None = None
    ends_session: bool = False
    counts_redelivered: bool = False
    pause_s: float | None = None

    def __post_init__(self) -> None:
        # Otherwise, later messages would overtake this one, or it would outlive its queue.
        if (self.message is ForMessage.STAYS) is not (self.rest is ForRest.STAYS):
            raise ValueError("message and rest must both stay, or neither")
        ends = self.ends_session or self.input in (DispatcherInput.GIVE_UP, DispatcherInput.END)
        if ends and self.rest is not ForRest.DEAD:
            raise ValueError("the rest must be dead letters when the session ends")


class ErrorHandler(Protocol):
    """Decides how to react to a failure, for all sessions of a channel. No side effects."""

    def react(self, failure: Failure, dispatcher: Dispatcher, now: float) -> Reaction: ...


class PartialErrorHandler(Protocol):
    """A plug-in. Decides like an `ErrorHandler`, or returns None to let the next one decide."""

    def react(self, failure: Failure, dispatcher: Dispatcher, now: float, /) -> Reaction | None: ...
