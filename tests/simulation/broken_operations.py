"""Servers that are broken where operators replay letters, drop them, or hold receivers back."""

from contextlib import ExitStack
from typing import Any

from holdfast.bayeux.sessions import life, restoring
from holdfast.bayeux.sessions.channel_holds import ChannelHolds
from holdfast.bayeux.sessions.replaying import Replaying
from holdfast.delivery.guard.holds import Guard
from holdfast.delivery.letters.dead import DeadLetter
from holdfast.delivery.queues.dispatcher import QueueHold
from holdfast.delivery.settling.undelivered import Undelivered
from holdfast.store.letters.administration import Letters
from holdfast.store.replays.control import Replays
from holdfast.store.replays.job_records import Job
from holdfast.store.replays.run import Run
from holdfast.web.admin.tokens import Role, Tokens
from tests.simulation.breaking import by_name, nothing, replace


def replayed_letters_wait_for_a_restart(stack: ExitStack) -> None:
    """The store has them, and the server that serves does not know it."""
    replace(stack, Replaying, "deliver", nothing)


def replays_end_with_their_server(stack: ExitStack) -> None:
    async def none(_: Replays) -> int:
        return 0

    replace(stack, Replays, "resume", none)


def holds_end_with_their_server(stack: ExitStack) -> None:
    replace(stack, restoring, "_stop", nothing)


def dropped_letters_are_only_counted(stack: ExitStack) -> None:
    async def count(_: Letters, letters: list[Any]) -> int:
        return len(letters)

    replace(stack, Letters, "remove", count)


def edited_letters_keep_their_data(stack: ExitStack) -> None:
    replace(stack, Job, "message", lambda _, letter: letter)


def letters_that_are_sent_on_go_to_their_receivers(stack: ExitStack) -> None:
    take = Run._take

    async def to_receivers(self: Run, letters: list[DeadLetter]) -> Any:
        options = self.job.options
        self.job.options = options.model_copy(update={"to": None})
        try:
            return await take(self, letters)
        finally:
            self.job.options = options

    replace(stack, Run, "_take", to_receivers)


def holds_of_sessions_never_end(stack: ExitStack) -> None:
    def endless(reason: str, who: str, since: int, _: int | None = None) -> QueueHold:
        return QueueHold(reason, who, since)

    for module in (life, restoring):
        replace(stack, module, "QueueHold", endless)


def holds_of_channels_never_end(stack: ExitStack) -> None:
    replace(stack, ChannelHolds, "tick", nothing)


def holds_of_channels_end_with_their_server(stack: ExitStack) -> None:
    replace(stack, Guard, "restore", lambda *_: False)


def ended_sessions_lose_their_queues(stack: ExitStack) -> None:
    replace(stack, Undelivered, "dead_letter_all", nothing)


def any_token_opens_the_administration(stack: ExitStack) -> None:
    replace(stack, Tokens, "role", lambda *_: Role.OPERATOR)


BUILDS_OF_OPERATIONS = by_name(
    replayed_letters_wait_for_a_restart,
    replays_end_with_their_server,
    holds_end_with_their_server,
    dropped_letters_are_only_counted,
    edited_letters_keep_their_data,
    letters_that_are_sent_on_go_to_their_receivers,
    holds_of_sessions_never_end,
    holds_of_channels_never_end,
    holds_of_channels_end_with_their_server,
    ended_sessions_lose_their_queues,
    any_token_opens_the_administration,
)
