"""What the store of a shard says about logs: its own, and how far it has taken the others."""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

from holdfast.store.format.keys import RedisKeys
from holdfast.store.links.link import StoreLink

# How many frames are read at once.
_FRAMES = 16


class StoredFrame(NamedTuple):
    """A frame in the log: the places before and behind it, as text, and its size in bytes."""

    before: str
    place: str
    size: int


class TakenLog(NamedTuple):
    """How far the log of another shard is taken: the place, and the incarnations before it."""

    place: str
    passed: str


class LogState(NamedTuple):
    """The log of a shard at the beginning of an incarnation, and what the shard has of others."""

    # The random text of the incarnation, and its number.
    nonce: str
    fence: int
    # The place at the end of the log, and the incarnations with frames in it.
    end: str
    incarnations: str
    frames: Sequence[StoredFrame]
    # By id of a frame, the place from which readers go on with it.
    links: Mapping[str, str]
    # By number of another shard.
    taken: Mapping[int, TakenLog]
    # The facts that this shard has told, by name.
    facts: Mapping[str, str]
    # By name, the calls of others that are not done.
    inbox: Mapping[str, bytes]


async def read_log_state(link: StoreLink, keys: RedisKeys, epoch: str) -> LogState:
    """Read it. Nothing may be appended meanwhile."""
    meta = cast("dict[bytes, bytes]", await link.ask("HGETALL", keys.meta))
    facts = _texts(await link.ask("HGETALL", keys.facts))
    # Where the log was when they changed last is for readers.
    facts.pop("", None)
    number, _, nonce = epoch.rpartition("-")[2].partition(".")
    inbox = cast("dict[bytes, bytes]", await link.ask("HGETALL", keys.inbox))
    return LogState(
        nonce=nonce,
        fence=int(number),
        end=meta.get(b"log", b"").decode(),
        incarnations=meta.get(b"openings", b"").decode(),
        frames=[frame async for frame in _frames(link, keys)],
        links=_texts(await link.ask("HGETALL", keys.links)),
        taken=dict(_taken(meta)),
        facts=facts,
        inbox={name.decode(): call for name, call in inbox.items()},
    )


def _taken(meta: Mapping[bytes, bytes]) -> Iterator[tuple[int, TakenLog]]:
    for name, place in meta.items():
        word, _, shard = name.partition(b" ")
        if word == b"place":
            passed = meta.get(b"passed " + shard, b"")
            yield int(shard), TakenLog(place.decode(), passed.decode())


async def _frames(link: StoreLink, keys: RedisKeys) -> AsyncIterator[StoredFrame]:
    after = "-"
    while True:
        found: Any = await link.ask("XRANGE", keys.log, after, "+", "COUNT", _FRAMES)
        for id, words in found:
            fields = dict(zip(words[::2], words[1::2], strict=True))
            before, place = fields.pop(b"before").decode(), fields.pop(b"place").decode()
            yield StoredFrame(before, place, sum(map(len, fields.values())))
            after = f"({id.decode()}"
        if len(found) < _FRAMES:
            return


def _texts(found: object) -> dict[str, str]:
    pairs = cast("dict[bytes, bytes]", found)
    return {name.decode(): text.decode() for name, text in pairs.items()}
