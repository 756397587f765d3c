"""The stored form of what a process that leaves gives to the next one.

It is cut into slices of records. A record has a line with the sizes of its two parts, its head in
JSON, and its body. It is either a message, which stands before the first queue that has it and is
written once however many queues have it, or something given, whose entries name their messages by
number. Something with many entries is cut into several records.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from sys import intern
from typing import Any, Final

import orjson

from holdfast.delivery.codec.attributes import Way, attributes_of, put_attributes
from holdfast.delivery.messages.given import MOST_SHARED, Given, GivenEntry, GivenKind
from holdfast.delivery.messages.message import Message
from holdfast.delivery.messages.session_record import RecordUnreadable
from holdfast.store.format import records
from holdfast.store.format.records import UNREADABLE

# A slice is closed when it is this long. A longer record is alone in its slice.
_SLICE_BYTES: Final = 256 * 1024
# The entries of one record.
_MOST_ENTRIES: Final = 2000


def slices(given: Iterable[Given]) -> Iterator[bytes]:
    """Pack everything given, which must not change meanwhile."""
    parts: list[bytes] = []
    size = 0
    for record in _Packing().records(given):
        if parts and size + len(record) > _SLICE_BYTES:
            yield b"".join(parts)
            parts, size = [], 0
        parts.append(record)
        size += len(record)
    if parts:
        yield b"".join(parts)


class _Packing:
    """Numbers the messages that are written."""

    def __init__(self) -> None:
        # By identity, with its number. Copies of one message differ.
        self._known: dict[int, tuple[int, Message]] = {}
        self._trails: dict[int, bytes] = {}
        # By identity, new entries as they are written. Queues share them.
        self._new: dict[int, tuple[GivenEntry, object]] = {}

    def records(self, given: Iterable[Given]) -> Iterator[bytes]:
        for each in given:
            fields: Any = each.fields
            entries = each.entries
            for begin in range(0, len(entries) or 1, _MOST_ENTRIES):
                packed: list[object] = []
                for entry in entries[begin : begin + _MOST_ENTRIES]:
                    known = self._new.get(id(entry))
                    if known is None:
                        yield from self._new_message(entry.message)
                        known = entry, self._entry(entry)
                        self._share(known)
                    packed.append(known[1])
                head = {"what": each.kind.value, "key": each.key, "is": fields, "has": packed}
                yield _record(orjson.dumps(head))
                fields = {}

    def _new_message(self, message: Message | None) -> Iterator[bytes]:
        if message is not None and id(message) not in self._known:
            number = len(self._known)
            self._known[id(message)] = number, message
            yield _record(orjson.dumps(_head(number, message)), message.wire)

    def _share(self, known: tuple[GivenEntry, object]) -> None:
        if not known[0].mark.position:
            if len(self._new) >= MOST_SHARED:
                self._new.clear()
            self._new[id(known[0])] = known

    def _entry(self, entry: GivenEntry) -> object:
        """Return the number of the message or, negative, the id of a stored one; then the rest."""
        mark, message, more = entry
        named = -mark.id if message is None else self._known[id(message)][0]
        is_new = not mark.position and not mark.attempts
        if is_new and more is None:
            return named
        text = "" if is_new else records.pack_mark(mark, self._trails).decode()
        return [named, text] if more is None else [named, text, more]


def _record(head: bytes, body: bytes = b"") -> bytes:
    return b"%d %d\n%b%b" % (len(head), len(body), head, body)


def _head(number: int, message: Message) -> dict[str, Any]:
    named: dict[str, Any] = {"v": records.VERSION, "number": number, "id": message.id}
    named |= {"c": message.channel, "s": message.sender}
    return named | attributes_of(message, Way.HAND_OVER)


class Unpacking:
    """Undoes `slices`. What cannot be read is passed to `unreadable`, with its name."""

    def __init__(self, unreadable: Callable[[str, Exception], None]) -> None:
        self._unreadable = unreadable
        # By number, and by kind and key.
        self._messages: dict[int, Message] = {}
        self._given: dict[tuple[str, str], Given] = {}
        # By what stands for them: new entries, which queues share.
        self._new: dict[int, GivenEntry] = {}

    def given(self) -> Sequence[Given]:
        """Return everything that was read."""
        return list(self._given.values())

    def read(self, slice: bytes) -> None:
        """Read the next slice."""
        place = 0
        while place < len(slice):
            line = slice.index(b"\n", place)
            of_head, of_body = map(int, slice[place:line].split())
            begin, middle = line + 1, line + 1 + of_head
            place = middle + of_body
            self._take(slice[begin:middle], slice[middle:place])

    def _take(self, line: bytes, body: bytes) -> None:
        name = "a record"
        try:
            head = orjson.loads(line)
            if body:
                name = f"message {head['id']}"
                self._messages[head["number"]] = _message(head, body)
            else:
                name = f"{head['what']} {head['key']}"
                self._take_given(head)
        except UNREADABLE as error:
            self._unreadable(name, error)

    def _take_given(self, head: dict[str, Any]) -> None:
        entries = self._entries(head["has"])
        known = self._given.get((head["what"], head["key"]))
        if known is None:
            kind = GivenKind(head["what"])
            known = Given(kind, head["key"], head["is"], [])
            self._given[head["what"], head["key"]] = known
        known.entries = [*known.entries, *entries]

    def _entries(self, packed: Any) -> list[GivenEntry]:  # noqa: ANN401 - whatever the record has
        new, found = self._new, []
        for each in packed:
            if not isinstance(each, int):
                found.append(self._entry(each))
                continue
            entry = new.get(each)
            if entry is None:
                if len(new) >= MOST_SHARED:
                    new.clear()
                entry = new[each] = self._entry(each)
            found.append(entry)
        return found

    def _entry(self, packed: Any) -> GivenEntry:  # noqa: ANN401 - whatever the record has
        named, text, *more = packed if isinstance(packed, list) else (packed, "")
        message = None if named < 0 else self._messages[named]
        id = -named if message is None else message.id
        mark, _ = records.unpack_entry(id, text.encode())
        return GivenEntry(mark, message, more[0] if more else None)


def _message(head: dict[str, Any], wire: bytes) -> Message:
    if head["v"] != records.VERSION:
        raise RecordUnreadable(f"message {head['id']} has version {head['v']}")
    channel, sender = intern(head["c"]), intern(head["s"])
    message = Message(wire, id=head["id"], channel=channel, sender=sender)
    put_attributes(message, head)
    return message
