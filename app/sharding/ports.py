"""The port to the store of this shard, for its log and what it takes from others."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from holdfast.delivery.messages.marks import BatchMark
from holdfast.delivery.messages.message import Message
from holdfast.store.format.log_scripts import Step
from holdfast.store.framing.shard_log import Taken


class ShardStore(Protocol):
    """Appends frames and takes frames, in the order of the calls, each once or not at all."""

    @property
    def is_available(self) -> bool:
        """Whether the store takes frames now."""
        ...

    @property
    def waits_for_replicas(self) -> bool:
        """Whether a message only counts when replicas have it."""
        ...

    @property
    def unanswered_s(self) -> float:
        """How long ago the store last answered."""
        ...

    def append(
        self, count: int, parts: Mapping[str, bytes], done: Callable[[bool], None], /
    ) -> None:
        """Append a frame of so many passing entries. `done` hears whether the log has it."""
        ...

    def append_facts(
        self,
        facts: Mapping[str, str],
        parts: Mapping[str, bytes],
        done: Callable[[str | None], None],
        answered: Sequence[str] = (),
        /,
    ) -> None:
        """Append a frame of facts, places, or answers to calls. A full store does so, too.

        `done` gets the text of a place behind it; None if the log does not have it.
        """
        ...

    def find_key(self, digest: str, done: Callable[[int | None], None], /) -> None:
        """Find the message of this shard with a publish key, behind all that the store has.

        `done` hears its id, 0 if there is none, and None if the store is unavailable.
        """
        ...

    def take(
        self,
        step: Step,
        messages: Sequence[tuple[Message, Sequence[str]]],
        others_calls: Mapping[str, bytes],
        /,
        *,
        done: Callable[[Taken], None],
        hand_overs: Mapping[str, BatchMark],
    ) -> None:
        """Store messages for sessions, and calls of others, and move a place on, in one step.

        `hand_overs` are what sessions will get at once. The same step may store them, too.
        """
        ...

    def trim(self, first: str, removed: Sequence[str], links: Mapping[str, str], /) -> None:
        """Remove frames before the first one that stays, and further ones; change links."""
        ...
