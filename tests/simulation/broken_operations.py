"""Servers that are broken where operators replay letters, drop them, or hold receivers back."""

from contextlib import ExitStack
from typing import Any

from holdfast.bayeux.sessions import restoring
from holdfast.bayeux.sessions.replaying import Replaying
from holdfast.store.letters.administration import Letters
from holdfast.store.replays.control import Replays
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

    replace(stack, Letters, "_remove", count)


def any_token_opens_the_administration(stack: ExitStack) -> None:
    replace(stack, Tokens, "role", lambda *_: Role.OPERATOR)


BUILDS_OF_OPERATIONS = by_name(
    replayed_letters_wait_for_a_restart,
    replays_end_with_their_server,
    holds_end_with_their_server,
    dropped_letters_are_only_counted,
    any_token_opens_the_administration,
)
