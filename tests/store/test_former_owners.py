"""Whoever had a store before writes nothing by any script, on the same host or another one."""

from pathlib import Path
from typing import Any

import pytest
from redis import Redis
from redis.exceptions import ResponseError

import holdfast.store
from holdfast.offline.shard_side import Command, Side
from holdfast.store.format import log_scripts, scripts
from holdfast.store.format.opening_scripts import open_store
from holdfast.store.format.scripts import ScriptCall
from holdfast.store.links.resp import Word
from holdfast.store.links.script import Script
from holdfast.store.opening import dividing
from tests.store.model import EPOCH, NONCE, Room
from tests.store.numbering import Numbering
from tests.store.store_process import DEPLOYMENT, KEYS, message

_FOLDER = Path(holdfast.store.__file__).parent / "lua"
# What the other host has, and its process.
OTHER = "seed-2.other000"
_LOCK, _OTHER_LOCK = "lock of a", "lock of b"

# By script that is called with an epoch, what a former owner calls it with, and what it is told.
BY_EPOCH: dict[Script, tuple[list[str], list[Any], object]] = {
    scripts.RAISE: ([KEYS.meta], [EPOCH], OTHER.encode()),
    scripts.COUNT: ([KEYS.meta], [EPOCH], 0),
    scripts.OFFER: ([KEYS.meta], [EPOCH, "c"], OTHER.encode()),
    dividing.DIVIDE: ([KEYS.meta] * 7, [2, EPOCH, 1, "", ""], "EPOCH"),
    scripts.AS_OWNER: ([KEYS.meta], [EPOCH, 4, "HSET", KEYS.meta, "next", "-"], "EPOCH"),
    # It writes that replicas have what is stored: a former owner cannot say so of its own calls.
    scripts.CONFIRM: ([KEYS.meta, KEYS.bodies, KEYS.keyed], [f"{NONCE}-{1:012}"], 0),
}
# Every call has the number and the random text of its process: two tests call each of these.
NUMBERED = [*scripts.SCRIPTS, *log_scripts.LOG_SCRIPTS]


def opening(nonce: str, **how: Any) -> ScriptCall:
    given = {"lock": _LOCK, "host": "a", **how}
    return open_store(KEYS, seed="seed", node="test", nonce=nonce, deployment=DEPLOYMENT, **given)


def written(room: Room) -> dict[str, object]:
    return {name: room.redis.dump(name) for name in room.names("*")}


@pytest.fixture
def room(redis: Redis) -> Room:
    """A store that host a had, and host b has opened since."""
    room = Room(redis)
    room.redis.flushall()
    room.call(opening(NONCE))
    room.redis.hset(KEYS.meta, "next", f"2 1 {1:019}")
    assert room.call(opening("other000", host="b", lock=_OTHER_LOCK, unraised=f"{EPOCH} 0"))
    return room


def test_every_script_is_among_those_that_are_tested() -> None:
    """Or it cannot write. A new one needs a test with a former owner."""
    own = [path for path in _FOLDER.glob("*.lua") if path.read_text().startswith("#!lua")]
    reading = {path.stem for path in own if "flags=no-writes" in path.read_text().split("\n")[0]}
    tested = {script.name.partition(" with ")[0] for script in (*NUMBERED, *BY_EPOCH)}
    # Moves places on, and is the same as another one.
    assert {path.stem for path in own} == reading | tested - {"follow"}


@pytest.mark.parametrize("script", NUMBERED, ids=lambda script: script.name)
def test_a_script_that_numbers_its_calls_looks_first_who_calls(script: Script) -> None:
    if script is scripts.OPEN:
        return
    fence = (_FOLDER / "fence.lua").read_text()
    first_line, _, rest = script.source.partition("\n")
    assert first_line.startswith("#!lua")
    assert rest.startswith(fence)


@pytest.mark.parametrize("script", BY_EPOCH, ids=lambda script: script.name)
def test_a_script_with_the_epoch_of_a_former_owner_writes_nothing(
    room: Room, script: Script
) -> None:
    keys, args, said = BY_EPOCH[script]
    before = written(room)
    call = room.redis.register_script(script.source)
    if said == "EPOCH":
        with pytest.raises(ResponseError, match="EPOCH"):
            call(keys=keys, args=args)
    else:
        assert call(keys=keys, args=args) == said
    assert written(room) == before


@pytest.mark.parametrize("script", BY_EPOCH, ids=lambda script: script.name)
def test_the_owner_writes_by_the_same_script(room: Room, script: Script) -> None:
    room.numbering = Numbering("other000")
    room.call(scripts.keep(KEYS, [(message(1), ["joe/1"])]))
    keys, args, _ = BY_EPOCH[script]
    own = [OTHER if each == EPOCH else each for each in args]
    own = [each.replace(NONCE, "other000") if isinstance(each, str) else each for each in own]
    before = written(room)
    if script is dividing.DIVIDE:
        keys = [KEYS.meta, KEYS.log, KEYS.facts, KEYS.links, KEYS.inbox, KEYS.audit, "none"]
    room.redis.register_script(script.source)(keys=keys, args=own)
    assert written(room) != before


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({}, f"HELD {OTHER} 0"),
        # What it saw before the other host opened the store.
        ({"unraised": f"{EPOCH} 0"}, f"HELD {OTHER} 0"),
        ({"instead_of": [EPOCH]}, f"EPOCH {OTHER}"),
        ({"instead_of": [EPOCH], "takes_back": True}, f"EPOCH {OTHER}"),
        ({"offered": EPOCH}, f"OFFER {OTHER}"),
        ({"offered": OTHER}, f"OFFER {OTHER}"),
    ],
)
def test_a_former_owner_does_not_open_what_another_host_has(
    room: Room, how: dict[str, Any], said: str
) -> None:
    before = written(room)
    with pytest.raises(ResponseError, match=said):
        room.call(opening("again000", **how))
    assert written(room) == before


def offer(room: Room, host: str) -> None:
    room.redis.register_script(scripts.OFFER.source)(keys=[KEYS.meta], args=[OTHER, host])


def test_an_offer_is_opened_by_its_host_once(room: Room) -> None:
    offer(room, "a")
    with pytest.raises(ResponseError, match="OFFER"):
        room.call(opening("third000", host="c", offered=OTHER))
    with pytest.raises(ResponseError, match="OFFER"):
        room.call(opening("again000", offered=EPOCH))
    assert room.call(opening("again000", offered=OTHER))[0] == b"seed-3.again000"
    assert "offer" not in room.hash(KEYS.meta)
    with pytest.raises(ResponseError, match="OFFER"):
        room.call(opening("twice000", offered=OTHER))


def test_an_offer_that_was_taken_back_is_not_opened(room: Room) -> None:
    offer(room, "a")
    offer(room, "")
    before = written(room)
    with pytest.raises(ResponseError, match=f"OFFER {OTHER}"):
        room.call(opening("again000", offered=OTHER))
    assert written(room) == before


class Commands:
    """A store, as offline tools see it."""

    def __init__(self, room: Room) -> None:
        self._run: Any = room.redis.execute_command

    async def ask(self, *command: Word) -> Any:
        return self._run(*command)

    async def ask_all(self, *commands: Command) -> list[Any]:
        return [self._run(*each) for each in commands]


async def test_an_offline_tool_changes_nothing_once_another_process_has_the_store(
    room: Room,
) -> None:
    changes = ("HSET", KEYS.sessions, "joe/1", "{}"), ("HDEL", KEYS.meta, "next")
    before = written(room)
    with pytest.raises(ResponseError, match=f"EPOCH {OTHER}"):
        await Side(0, Commands(room), KEYS, lambda _: EPOCH).change(*changes)
    assert written(room) == before
    assert await Side(0, Commands(room), KEYS, lambda _: OTHER).change(*changes) == [1, 1]
    assert room.hash(KEYS.sessions) == {"joe/1": "{}"}
