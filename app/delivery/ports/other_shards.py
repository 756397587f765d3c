"""The port to the other shards of a deployment, which have receivers of the same channels."""

from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, Protocol

from holdfast.delivery.messages.message import Message


class LogFigures(NamedTuple):
    """The books of what crosses, since the start of this process, by numbers of shards."""

    shard: int
    # Entries that the log of this shard has got, and passing ones that it never got.
    appended: int
    dropped: int
    # Entries in the logs of others: taken; removed before, because this shard was behind and did
    # not need them; and missing.
    taken: Mapping[int, int]
    skipped: Mapping[int, int]
    missing: Mapping[int, int]
    # For how many seconds others have not taken the first frame that they have not taken.
    behind_s: Mapping[int, float]
    # Messages that are not stored, and went over links instead of the log.
    passed: int = 0
    # By cause, messages that did not wait any longer for stored ones before them.
    early: Mapping[str, int] = MappingProxyType({})
    # Entries in the logs of others that were read, and then lost by their stores.
    beyond: Mapping[int, int] = MappingProxyType({})


class OthersPort(Protocol):
    """The other shards, as publishes and subscriptions see them."""

    def has_durable(self, channel: str, /) -> bool:
        """Return whether any of them may have durable receivers of the channel."""
        ...

    def refuses(self, channel: str, /) -> bool:
        """Return whether one that may have durable receivers of the channel is too far behind."""
        ...

    def pass_on(self, message: Message, /, *, is_early: bool = False) -> None:
        """Pass on a message that is not stored: it leaves at the end of the turn.

        Args:
            is_early: Whether it did not wait any longer for a stored one before it.
        """
        ...

    def is_away(self, shard: int, /) -> bool:
        """Return whether the shard could not be reached for some seconds."""
        ...

    def add_row(self, row: str, /) -> None:
        """Tell them, in order with messages, that the row stands here, for one more reason.

        A row is the pattern of a durable subscription, or is named by a prefix in `channels.py`.
        They know it also after their next start, and after a gap. After a start of this shard, the
        rows that stand are to be added again before it serves.
        """
        ...

    def remove_row(self, row: str, /) -> None:
        """Take back one `add_row`."""
        ...

    def has_row(self, row: str, /) -> bool | None:
        """Return whether the row stands in any of them; None if one of them has not said."""
        ...

    def may_have_rows(self, row: str, /) -> bool:
        """Return whether any of them may have this row, or one with a pattern that covers it."""
        ...

    def join(self, channel: str, is_pattern: bool, /) -> None:
        """Get messages of a channel, or of those that match a pattern, which has receivers here.

        Others may have left them out. `when_joined` says when they leave them out no more.
        """
        ...

    @property
    def has_joined(self) -> bool:
        """Whether others leave out nothing that has receivers here."""
        ...

    def when_joined(self, done: Callable[[], None], /) -> None:
        """Call `done` once, when others leave out nothing that has had receivers here so far."""
        ...

    def complete_cursor(self) -> int:
        """Return the cursor up to which no message of a history will come, from any shard.

        It is 0 as long as one of them has not said how far it is.
        """
        ...

    def tell_topic(self, channel: str, is_topic: bool, /) -> None:
        """Tell them that the channel is a topic, although no rule says so, or is none any more."""
        ...

    def when_topic_known(self, channel: str, done: Callable[[bool], None], /) -> None:
        """Call `done` once: when all others know that, behind all earlier publishes, or cannot.

        It is called at once if they know already, and after 5 s at most.
        """
        ...

    def find_key(self, digest: str, done: Callable[[int | None], None], /) -> None:
        """Find the message of this shard with a publish key, behind all that the store has.

        `done` hears its id in a later turn, 0 if there is none, and None without the store.
        """
        ...

    @property
    def topics(self) -> Collection[str]:
        """The topics that any of them has told so."""
        ...

    def figures(self) -> LogFigures:
        """Return the books of what crosses."""
        ...

    def when_known(self, patterns: Sequence[str], done: Callable[[bool], None], /) -> None:
        """Call `done` once: when all others know of durable receivers of these patterns, or cannot.

        Then these have joined, too. It is called at once if all know already, and after some
        seconds at most.
        """
        ...
