"""Servers that are broken where messages are refused, come again, or expire."""

from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

from holdfast.delivery.queues.dispatcher import Dispatcher
from holdfast.delivery.settling.undelivered import Undelivered
from holdfast.store.letters.administration import Letters
from holdfast.store.letters.filter import ALL_LETTERS
from tests.simulation.breaking import by_name, nothing, replace


def letters_are_lost_at_a_restart(stack: ExitStack) -> None:
    survey = Letters._survey

    async def purge(self: Letters) -> None:
        async for step, _ in self.search.scan(ALL_LETTERS):
            if step:
                await self.remove(step)
        await survey(self)

    replace(stack, Letters, "_survey", purge)


def a_retry_forgets_its_clock(stack: ExitStack) -> None:
    """The next server hands out at once what is due later."""
    go_on = Dispatcher.go_on

    def at_once(self: Dispatcher, left: Mapping[str, Any], now: float) -> None:
        go_on(self, left, now)
        self.deadline = None if self.deadline is None else now

    replace(stack, Dispatcher, "go_on", at_once)


def who_was_missed_gets_everything_at_once(stack: ExitStack) -> None:
    """What a client refuses with the first connect behind a loss of contact."""
    replace(stack, Dispatcher, "heard", nothing)


def expired_messages_are_handed_out(stack: ExitStack) -> None:
    replace(stack, Undelivered, "expire_waiting", lambda *_: 0)


BUILDS_OF_REFUSALS = by_name(
    letters_are_lost_at_a_restart,
    a_retry_forgets_its_clock,
    who_was_missed_gets_everything_at_once,
    expired_messages_are_handed_out,
)
