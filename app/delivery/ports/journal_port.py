"""The port to the journal, and the path of an event into it: from call to note to frame.

The core reports each change of an entry once, to the ledger. `app/delivery/ports/ledger.py` lists
which of two ways each event takes into the journal.

*Live.* The ledger reports to the journal, by the methods under that heading, what the store does
not see: publishes and hand-overs of receivers that are not durable. Other parts of the core report
sessions, dispatchers, holds and requests there.

*By a note.* The ledger reports a change of the store to the store alone (`StorePort`): the change
and its journal event must either both survive a kill of the process, or neither.

1. The ledger calls `keep`, `move`, `mark_batch`, `mark`, `settle` with the outcome, or
   `dead_letter`; the hub calls `keep` for publishes, because it waits for the answer, and the end
   of a session calls `forget`.
2. When the turn ends, `app/store/writing/turn_writes.py` combines them into few calls, and asks
   the journal for the note of each (`note_...`).
3. `app/store/writing/journaling.py` numbers the note and puts it into its call: the script changes
   the store and leaves the note in the hash `notes:<node>`, in one step (`app/store/lua/note.lua`).
4. When the store has answered, `answered` puts the note's events into the next frame.
5. Once a second, or after a tenth of a second if there are many, `app/journal/journal.py` writes a
   frame with the numbers of its notes: the script adds the frame to the stream `journal:<node>` and
   removes those notes, in one step (`app/store/lua/frame.lua`).
6. A new process first reads the notes that a killed one left in `notes:<node>`, and writes their
   events (`app/journal/writer.py`, `report_left_notes`).

Refusals do not change the store, but refusals of durable receivers go into the note of the call
that carries them out (`refused_with_note`).

Two kinds of notes matter only after a kill: notes of ended sessions (`note_left`) and of replayed
letters (`note_replayed`). The ledger reports these events live, and `skip_note` drops their notes.
Hand-overs in notes of messages that bring them (`note_kept`) are reported when they happen, too.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from holdfast.delivery.messages.marks import NO_HAND_OVERS

if TYPE_CHECKING:
    from holdfast.delivery.basics.error_codes import ErrorCode
    from holdfast.delivery.basics.steps import Step
    from holdfast.delivery.letters.dead import DeadLetter
    from holdfast.delivery.messages.entries import Entry
    from holdfast.delivery.messages.marks import BatchMark
    from holdfast.delivery.messages.message import Message
    from holdfast.delivery.messages.outcomes import Move, Outcome
    from holdfast.delivery.queues.dispatcher import DispatcherState
    from holdfast.delivery.queues.receivers import Receiver


class DeliveryJournal:
    """Writes the journal. This null object, used when the journal is off, writes nothing."""

    # Whether the journal is written.
    is_writing = False
    # The number of frames trimmed before all readers had read them.
    unread = 0

    @property
    def dropped(self) -> int:
        """The number of events that no frame contains."""
        return 0

    def beat(self, now: float) -> None:
        """Advance the clock. Called every tenth of a second."""

    # Live: the most frequent events; `now` is the loop's time

    def published(self, message: "Message", copies: int) -> None:
        """Record a message for `copies` receivers whose queues are not in the store."""

    def handed(self, receiver: "Receiver", messages: "Sequence[Message]", now: float) -> None:
        """Record first hand-overs. The sequence must not change afterwards."""

    def written(self, receiver: "Receiver", messages: "Sequence[Message]", now: float) -> None:
        """Record first hand-overs that are settled when written."""

    def acked(self, receiver: "Receiver", messages: "Sequence[Message]", now: float) -> None:
        """Record acked messages. The sequence must not change afterwards."""

    def end_round(self) -> None:
        """End the turn's hand-overs: no more follow."""

    # Live: other events of messages

    def arrived(self, step: "Step", receiver: "Receiver", message: "Message") -> None:
        """Record a message that entered a queue by this step. The store does not have it."""

    def replayed(self, key: str, message: "Message", letter: int) -> None:
        """Record that a dead letter became a message again: one more copy, for this session."""

    def handed_again(self, receiver: "Receiver", entries: "Iterable[Entry]") -> None:
        """Record hand-overs that include redeliveries."""

    def refused(
        self, receiver: "Receiver", entries: "Iterable[Entry]", code: "ErrorCode", text: str
    ) -> None:
        """Record failed deliveries. The outcome of the entries is reported separately."""

    def refused_with_note(
        self, receiver: "Receiver", entries: "Iterable[Entry]", code: "ErrorCode", text: str
    ) -> None:
        """Record failed deliveries in the notes of the calls that change these entries."""

    def returned(self, receiver: "Receiver", entries: "Iterable[Entry]") -> None:
        """Record entries that returned to the queue."""

    def settled(
        self, receiver: "Receiver", messages: "Sequence[Message]", outcome: "Outcome"
    ) -> None:
        """Record undelivered messages that the store does not have."""

    def turned_away(
        self, receivers: "Sequence[Receiver]", message: "Message", outcome: "Outcome"
    ) -> None:
        """Record receivers whose queues refused a message that the store never had for them."""

    def moved(self, moves: "Sequence[Move]") -> None:
        """Record messages that moved from one queue to others. The store has none of them."""

    def borrowed(self, number: int) -> None:
        """Record work that came from another shard, or went there if negative, for the books."""

    # Live: sessions, dispatchers, holds

    def session(self, receiver: "Receiver", what: str) -> None:
        """Record that a session began, ended, or changed its client."""

    def dispatcher(self, receiver: "Receiver", state: "DispatcherState") -> None:
        """Record that the dispatcher entered this state."""

    def held(self, who: str, *, receiver: str | None = None, channel: str | None = None) -> None:
        """Record that a queue or channel is held back until it is released."""

    def released(
        self, who: str, *, receiver: str | None = None, channel: str | None = None
    ) -> None:
        """Record that a queue or channel was released."""

    def publishes_refused(self, reason: str, channel: str, count: int) -> None:
        """Record how many publishes were refused; `channel` is empty if it is unknown."""

    def missed(self, shard: int, count: int) -> None:
        """Record that messages of another shard did not arrive; `count` is 0 if it is unknown."""

    def came_early(self, cause: str, count: int) -> None:
        """Record that messages did not wait any longer for stored ones before them."""

    # Live: requests and their replies

    def asked(self, requester: "Receiver", channel: str, timeout_ms: int) -> None:
        """Record a request."""

    def request_ended(self, how: str, requester: "Receiver", channel: str, id: int) -> None:
        """Record how the request with this message id ended."""

    def replied(self, what: str, key: str, channel: str, id: int) -> None:
        """Record what happened to a reply; without a channel, it answers no known request."""

    # Notes. The store asks for them, in the order of its calls, just before it sends these. After
    # it was emptied, it receives everything again and asks again. b"" means that there is nothing
    # to note.

    def note_kept(
        self,
        messages: Sequence[tuple["Message", Sequence[str]]],
        early: Mapping[str, "BatchMark"] = NO_HAND_OVERS,
    ) -> bytes:
        """Return the note of messages that enter these sessions' queues, or only a history.

        A message with a publish key gets a separate call. A repeat leaves no note.

        Args:
            early: Hand-overs that the store has before they happen. The ledger reports them live,
                so they are only in the note that remains after a kill.
        """
        return b""

    def note_handed_over(self, batches: Mapping[str, "BatchMark"]) -> bytes:
        """Return the note of first hand-overs to these sessions."""
        return b""

    def note_marked(
        self,
        marked: Mapping[str, Collection[int]],
        hand_overs: Mapping[str, Sequence[tuple[int, int]]],
    ) -> bytes:
        """Return the note of changed entries and their hand-overs, for each session.

        Args:
            marked: Message ids.
            hand_overs: Message ids and attempt numbers.
        """
        return b""

    def note_moved(self, moves: "Sequence[Move]") -> bytes:
        """Return the note of messages that move from one queue to others."""
        return b""

    def note_settled(self, entries: Mapping[int, Sequence[str]], outcome: "Outcome") -> bytes:
        """Return the note of an outcome: for each message id, the sessions."""
        return b""

    def note_dead(self, letters: Sequence[tuple["DeadLetter", str | None]]) -> bytes:
        """Return the note of dead letters; the session name is None if the store had no entry."""
        return b""

    def note_left(self, sessions: Mapping[str, Sequence[int]]) -> bytes:
        """Return the note of sessions that ended, with the messages still in their queues."""
        return b""

    def note_replayed(self, letters: Sequence[tuple["DeadLetter", str]]) -> bytes:
        """Return the note of letters to be replayed to these sessions.

        It has a header line, and one line for each letter. The store keeps the lines of letters
        that it could replay.
        """
        return b""

    def answered(self, number: int, *, is_there: bool, postponed: object = None) -> None:
        """Report whether the store has the oldest unanswered note, and its number there.

        Or this one, which was postponed before.
        """

    def postpone(self) -> object:
        """Return the oldest unanswered note, whose call will be made again out of order."""
        return None

    def skip_note(self, number: int) -> None:
        """Skip the note with this number: its events were reported live."""


NO_JOURNAL = DeliveryJournal()
