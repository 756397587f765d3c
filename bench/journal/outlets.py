"""Writes generated frames to streams, as the server does, or to files."""

from pathlib import Path
from typing import BinaryIO, Protocol

import orjson
from redis import Redis

from holdfast.store.format import scripts
from holdfast.store.format.keys import RedisKeys
from holdfast.store.links.call_numbers import CallNumbers

EPOCH = "made-up-1"
# Entries of one write.
_TOGETHER = 64


class Outlet(Protocol):
    """Takes the frames of nodes in the order of their numbers."""

    def write(self, node: str, frame: bytes) -> None: ...

    def close(self, truth: bytes) -> None:
        """Close the outlet; `truth` has the totals that its frames must add up to."""
        ...


_NONCE = "generate"


class Streams:
    """Writes a namespace of a store, as a server would leave it."""

    def __init__(self, url: str, namespace: str) -> None:
        self._redis = Redis.from_url(url)
        self._keys = RedisKeys(namespace)
        self._pipe = self._redis.pipeline(transaction=False)
        self._pipe.hset(self._keys.meta, mapping={"epoch": EPOCH, "call": f"{_NONCE}-{0:012d}"})
        self._numbers = CallNumbers()
        self._numbers.begin(_NONCE)

    def write(self, node: str, frame: bytes) -> None:
        call = scripts.frame(self._keys, node, epoch=EPOCH, frame=frame, notes=())
        args = [self._numbers.next(may_be_refused=False), *call.args]
        self._pipe.eval(call.script.source, len(call.keys), *call.keys, *args)
        if len(self._pipe) >= _TOGETHER:
            self._pipe.execute()

    def close(self, truth: bytes) -> None:
        self._pipe.set(self._keys.journal("truth"), truth)
        self._pipe.execute()
        self._redis.close()


class Files:
    """Writes a file for each node: for each frame the length in four bytes, a line, the frame.

    The length is that of the line and the frame.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._files: dict[str, BinaryIO] = {}
        self._numbers: dict[str, int] = {}

    def write(self, node: str, frame: bytes) -> None:
        if node not in self._files:
            self._files[node] = (self._folder / f"{node}.frames").open("wb")
        seq = self._numbers[node] = self._numbers.get(node, 0) + 1
        entry = orjson.dumps({"epoch": EPOCH, "seq": seq}) + b"\n" + frame
        self._files[node].write(len(entry).to_bytes(4) + entry)

    def close(self, truth: bytes) -> None:
        for file in self._files.values():
            file.close()
        (self._folder / "truth.json").write_bytes(truth)


class Nowhere:
    """Keeps no frames."""

    def write(self, node: str, frame: bytes) -> None:
        """Do nothing."""

    def close(self, truth: bytes) -> None:
        """Do nothing: no frame was kept."""
