"""Journals for tests: events put into frames, and frames into a store as the server puts them."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

from holdfast.journal.frame import Body, Head, count, encode
from holdfast.journal.schema import VERSION, Event
from holdfast.pipeline.source.streams import shard_of
from holdfast.store.format import scripts
from holdfast.store.format.keys import RedisKeys
from tests.store.numbering import Numbering
from tests.store.servers import ValkeyServer
from tests.unit.pipeline.events import NODE

_WHY = ("attempt", "code", "wording", "letter", "fingerprint", "generation", "kept")


def frame_of(events: Iterable[Event], version: int = VERSION, deployment: str = "") -> bytes:
    """A frame of the events; it keeps their order if those of a kind stand together."""
    return _Packing(list(events), deployment).frame(version)


class _Packing:
    def __init__(self, events: Sequence[Event], deployment: str) -> None:
        self._events = events
        self._deployment = deployment
        self._names: list[str] = []
        self._channels: list[str] = []
        self._groups: list[list[int]] = []
        self._messages: list[tuple[int, str | None]] = []

    def frame(self, version: int) -> bytes:
        times = [each.ts for each in self._events]
        self._t0 = min(times)
        groups = {"published": [], "delivered": [], "changed": []}  # type: dict[str, list[Event]]
        for each in self._events:
            groups[_block(each)].append(each)
        body: dict[str, Any] = {}
        for name, pack in (
            ("published", self._published),
            ("delivered", self._delivered),
            ("changed", self._changed),
        ):
            if groups[name]:
                body[name] = pack(groups[name])
        if self._messages:
            body["messages"] = {
                "id": [msg - self._t0 * 1000 for msg, _ in self._messages],
                "channel": [_place(self._channels, channel) for _, channel in self._messages],
            }
        if self._groups:
            body["groups"] = self._groups
        whole: Body = {"names": self._names, "channels": self._channels, **body}  # type: ignore[typeddict-item]
        node = self._events[0].node
        head = Head(version, node, count(whole), self._t0, max(times), self._deployment)
        return encode(head, whole)

    def _message(self, each: Event) -> int:
        assert each.msg is not None
        return _place(self._messages, (each.msg, each.channel))

    def _published(self, events: Sequence[Event]) -> dict[str, Any]:
        assert all(each.ts == (each.msg or 0) // 1000 for each in events)
        columns = {name: [getattr(each, name) for each in events] for name in _OF_PUBLISHED}
        return {
            "message": [self._message(each) for each in events],
            **columns,
            "by": [_place(self._names, each.sender) for each in events],
        }

    def _delivered(self, events: Sequence[Event]) -> dict[str, Any]:
        return {
            "kind": [each.kind for each in events],
            "messages": [self._message(each) for each in events],
            "receivers": [self._group(each) for each in events],
            "t": [each.ts - self._t0 for each in events],
            **{name: [getattr(each, name) for each in events] for name in _WHY},
        }

    def _group(self, each: Event) -> int:
        self._groups.append([_place(self._names, each.receiver)])
        return len(self._groups) - 1

    def _changed(self, events: Sequence[Event]) -> dict[str, Any]:
        return {
            "kind": [each.kind for each in events],
            "t": [each.ts - self._t0 for each in events],
            "name": [_place(self._names, each.receiver) for each in events],
            "channel": [_place(self._channels, each.channel) for each in events],
            "what": [each.what for each in events],
            "number": [each.number for each in events],
        }


_OF_PUBLISHED = ("copies", "kept", "size", "priority")


def _block(each: Event) -> str:
    if each.kind == "published":
        return "published"
    return "changed" if each.msg is None else "delivered"


def _place(known: list[Any], word: Any) -> int:
    if word is None:
        return -1
    if word not in known:
        known.append(word)
    return int(known.index(word))


def evaluate(store: ValkeyServer, epoch: str, call: scripts.ScriptCall) -> None:
    """Call a script as a server does in its first call of the epoch."""
    store.ask("HSET", call.keys[0], "epoch", epoch, "call", f"nonce000-{0:012d}")
    keys: list[Any] = [len(call.keys), *call.keys]
    store.ask("EVAL", call.script.source, *keys, *Numbering("nonce000").words(call))


class Writer:
    """Writes frames of a node into a store, numbered as the server's script does it."""

    def __init__(self, store: ValkeyServer, node: str = NODE, namespace: str = "holdfast") -> None:
        self._store = store
        self._keys = RedisKeys(namespace, shard_of(node))
        self._node = node
        self.stream = self._keys.journal(node)
        self.epoch = "seed-1"
        # The name with which ids of messages begin; the node's if empty.
        self.deployment = ""

    def write(self, *events: Event) -> str:
        return self.write_frame(frame_of(events, deployment=self.deployment))

    def write_frame(self, frame: bytes) -> str:
        """The frame, with the next number; returns the entry's id."""
        call = scripts.frame(self._keys, self._node, epoch=self.epoch, frame=frame, notes=())
        evaluate(self._store, self.epoch, call)
        return self.entries()[-1]

    def append(self, seq: int, frame: bytes, before: str = "") -> str:
        """Append a frame with this number and digest."""
        words = ("epoch", self.epoch, "seq", seq, "before", before, "frame", frame)
        return str(self._store.ask("XADD", self.stream, "*", *words).decode())

    def forge(self, number: int, **fields: str | bytes | int) -> None:
        """Change fields of the entry at this place, and nothing else."""
        told = self._store.ask("XRANGE", self.stream, "-", "+")
        self._store.ask("DEL", self.stream)
        told[number][1].update({name.encode(): value for name, value in fields.items()})
        for id, entry in told:
            words = [word for pair in entry.items() for word in pair]
            self._store.ask("XADD", self.stream, id, *words)

    def write_all(self, events: Iterable[Event], *, each: int = 5) -> None:
        """Write the events, so many in a frame."""
        for _, group in groupby(enumerate(events), lambda pair: pair[0] // each):
            self.write(*(event for _, event in group))

    def entries(self) -> list[str]:
        """The ids of all entries."""
        return [id.decode() for id, _ in self._store.ask("XRANGE", self.stream, "-", "+")]

    def delete(self, *ids: str) -> None:
        self._store.ask("XDEL", self.stream, *ids)
