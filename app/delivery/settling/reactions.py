"""What decides about failed deliveries: the table of reactions, retries, and the plug-ins."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import Enum
from typing import Final

from holdfast.delivery.basics import error_codes
from holdfast.delivery.basics.error_codes import CODES, ErrorCode
from holdfast.delivery.ports.error_handler import (
    ErrorHandler,
    Failure,
    ForMessage,
    ForRest,
    PartialErrorHandler,
    Reaction,
)
from holdfast.delivery.queues.dispatcher import Dispatcher, DispatcherInput

log = logging.getLogger(__name__)


class CodeKind(Enum):
    """The kind of an error code, which decides the reaction."""

    __hash__ = object.__hash__

    HOLDBACK = "holdback"
    DEAD_MESSAGE = "dead message"
    AUTHENTICATION = "authentication"
    USER = "user"
    COMMUNICATION = "communication"


def classify(code: ErrorCode) -> CodeKind:
    """Return the kind of a code. Codes that receivers may not send count as `user.*`."""
    if code.listed is error_codes.HOLDBACK:
        return CodeKind.HOLDBACK
    if code.listed is error_codes.DEAD_MESSAGE:
        return CodeKind.DEAD_MESSAGE
    if code.is_type_of("user.security.authentication"):
        return CodeKind.AUTHENTICATION
    return CodeKind.COMMUNICATION if code.family == "communication" else CodeKind.USER


class OnUserException(Enum):
    """Whether a receiver that refuses a message goes on or ends."""

    CONTINUE = "continue"
    DEAD = "dead"


REFUSED = Reaction(ForMessage.DEAD, ForRest.FLOWS)
REFUSED_FOR_GOOD = Reaction(ForMessage.DEAD, ForRest.DEAD, DispatcherInput.END)
GIVEN_UP = Reaction(ForMessage.DEAD, ForRest.DEAD, DispatcherInput.GIVE_UP, ends_session=True)
AWAITED = Reaction(
    ForMessage.STAYS, ForRest.STAYS, DispatcherInput.REFUSAL, counts_redelivered=True
)
LOST = replace(AWAITED, input=DispatcherInput.LOSS)

REACTIONS: dict[CodeKind, Reaction] = {
    CodeKind.DEAD_MESSAGE: REFUSED,
    CodeKind.HOLDBACK: replace(AWAITED, input=DispatcherInput.HOLD),
    CodeKind.AUTHENTICATION: replace(REFUSED_FOR_GOOD, ends_session=True),
    CodeKind.USER: REFUSED,
    CodeKind.COMMUNICATION: AWAITED,
}


_STOPPING: Final = frozenset(
    code for code in CODES.values() if REACTIONS[classify(code)].message is ForMessage.STAYS
)


def stops(code: ErrorCode) -> bool:
    """Return whether it is about the receiver: usually the message and all behind it come again."""
    return code.listed in _STOPPING


class DefaultErrorHandler:
    """Decides by the table."""

    def __init__(self, on_user_exception: OnUserException = OnUserException.CONTINUE) -> None:
        self._on_user_exception = on_user_exception

    def react(self, failure: Failure, dispatcher: Dispatcher, now: float) -> Reaction:
        kind = classify(failure.code)
        if kind is CodeKind.COMMUNICATION:
            return _react_to_connection(failure, dispatcher)
        if kind is CodeKind.USER and self._on_user_exception is OnUserException.DEAD:
            return REFUSED_FOR_GOOD
        return REACTIONS[kind]


def _react_to_connection(failure: Failure, dispatcher: Dispatcher) -> Reaction:
    if dispatcher.gives_up():
        return GIVEN_UP
    is_reachable = failure.by_client or failure.code is error_codes.RESPONSE_TIMEOUT
    return AWAITED if is_reachable else LOST


class RetryThenDead:
    """Redelivers a refused message with doubling pauses before it becomes a dead letter.

    An example of a plug-in. It preserves order: everything behind the message waits too.
    """

    def __init__(
        self,
        attempts: int,
        backoff_s: float,
        longest_s: float,
        random: Callable[[], float],
        *,
        otherwise: ErrorHandler | None = None,
    ) -> None:
        self._attempts = attempts
        self._backoff_s = backoff_s
        self._longest_s = longest_s
        self._random = random
        self._otherwise = otherwise or DefaultErrorHandler()

    def react(self, failure: Failure, dispatcher: Dispatcher, now: float) -> Reaction:
        if classify(failure.code) is not CodeKind.USER or failure.attempts >= self._attempts:
            return self._otherwise.react(failure, dispatcher, now)
        pause_s = self._pause_s(failure.attempts)
        return Reaction(ForMessage.STAYS, ForRest.STAYS, counts_redelivered=True, pause_s=pause_s)

    def _pause_s(self, attempts: int) -> float:
        """Return half to all of the backoff at random, so that receivers do not retry in step."""
        backoff_s = self._backoff_s * 2.0 ** min(attempts - 1, 30)
        return min(backoff_s, self._longest_s) * (1 + self._random()) / 2


class ErrorHandlerChain:
    """Asks handlers in order, and skips those that return None or an invalid reaction."""

    def __init__(self, first: Sequence[PartialErrorHandler], last: ErrorHandler) -> None:
        self._first = first
        self._last = last

    def react(self, failure: Failure, dispatcher: Dispatcher, now: float) -> Reaction:
        for handler in self._first:
            try:
                reaction = handler.react(failure, dispatcher, now)
            except BaseException:
                # There must be a reaction even if a plug-in fails: the message waits for it.
                log.exception("error handler %s failed", type(handler).__name__)
                continue
            if isinstance(reaction, Reaction) and _is_possible(reaction, dispatcher):
                return reaction
        return self._last.react(failure, dispatcher, now)


def _is_possible(reaction: Reaction, dispatcher: Dispatcher) -> bool:
    """Return whether a retry is left. Without one, the message would wait forever."""
    return (
        reaction.input not in (DispatcherInput.REFUSAL, DispatcherInput.LOSS)
        or not dispatcher.gives_up()
    )
