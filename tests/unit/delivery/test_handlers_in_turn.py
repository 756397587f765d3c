"""Plugged-in error handlers: they are asked before the table, and cannot break its rules."""

import logging
from typing import Any

import pytest

from holdfast.delivery.basics.error_codes import CODES
from holdfast.delivery.ports.error_handler import Failure, ForMessage, ForRest, Reaction
from holdfast.delivery.queues.dispatcher import Dispatcher, DispatcherInput, Policy
from holdfast.delivery.settling.reactions import (
    AWAITED,
    GIVEN_UP,
    REFUSED,
    REFUSED_FOR_GOOD,
    DefaultErrorHandler,
    ErrorHandlerChain,
)

FAILURE = Failure(CODES["user.update.error"], "not today", channel="/a")
AGAIN = Reaction(ForMessage.STAYS, ForRest.STAYS, pause_s=1.0)


class Opinion:
    """A handler with one fixed answer, which remembers what it was asked."""

    def __init__(self, reaction: Any) -> None:
        self._reaction = reaction
        self.asked: list[Failure] = []

    def react(self, failure: Failure, dispatcher: Dispatcher, now: float) -> Reaction | None:
        self.asked.append(failure)
        if isinstance(self._reaction, Exception):
            raise self._reaction
        found: Reaction | None = self._reaction
        return found


def met(*opinions: Any, retries: int = 0) -> Reaction:
    """The reaction to a refused message, which the table alone would make a dead letter."""
    dispatcher = Dispatcher(Policy(retries))
    dispatcher.contact(0.0)
    handler = ErrorHandlerChain([Opinion(opinion) for opinion in opinions], DefaultErrorHandler())
    return handler.react(FAILURE, dispatcher, 0.0)


def test_the_first_reaction_of_a_handler_counts() -> None:
    assert met(AGAIN) == AGAIN
    assert met(None, AGAIN) == AGAIN
    assert met(REFUSED_FOR_GOOD, AGAIN) == REFUSED_FOR_GOOD


def test_handlers_behind_one_that_decides_are_not_asked() -> None:
    second = Opinion(None)
    handler = ErrorHandlerChain([Opinion(AGAIN), second], DefaultErrorHandler())
    handler.react(FAILURE, Dispatcher(), 0.0)
    assert second.asked == []


def test_the_table_decides_if_no_handler_does() -> None:
    assert met() == met(None) == met(None, None) == REFUSED


def test_a_handler_that_raises_is_logged_and_the_next_one_decides(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.ERROR):
        assert met(KeyError("x"), AGAIN) == AGAIN
        assert met(KeyError("x")) == REFUSED
    assert {record.message for record in caplog.records} == {"error handler Opinion failed"}


@pytest.mark.parametrize("nonsense", [True, "dead letter", ForMessage.DEAD], ids=repr)
def test_an_answer_that_is_no_reaction_is_ignored(nonsense: Any) -> None:
    assert met(nonsense) == REFUSED


def test_a_reaction_that_awaits_a_receiver_without_retries_is_ignored() -> None:
    assert met(AWAITED, retries=0) == REFUSED
    assert met(AWAITED, retries=1) == AWAITED
    assert met(GIVEN_UP, retries=0) == GIVEN_UP


@pytest.mark.parametrize(
    "reaction",
    [
        {"message": ForMessage.STAYS, "rest": ForRest.FLOWS},
        {"message": ForMessage.STAYS, "rest": ForRest.DEAD},
        {"message": ForMessage.DEAD, "rest": ForRest.STAYS},
        {"message": ForMessage.DEAD, "rest": ForRest.FLOWS, "ends_session": True},
        {"message": ForMessage.STAYS, "rest": ForRest.STAYS, "input": DispatcherInput.GIVE_UP},
        {"message": ForMessage.DEAD, "rest": ForRest.FLOWS, "input": DispatcherInput.END},
    ],
    ids=repr,
)
def test_reactions_that_would_reorder_or_lose_messages_are_refused(reaction: Any) -> None:
    with pytest.raises(ValueError, match=r"stay|ends"):
        Reaction(**reaction)
