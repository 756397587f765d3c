"""Shards that write and read logs, with the real scripts in a real store, and all that fails.

The seed decides what happens next: calls are carried out, answers arrive or are lost, processes
are killed or get rivals, stores go back. So a seed that fails does so again.
"""

import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, cast

import orjson
from redis import Redis
from redis.exceptions import ResponseError

from holdfast.cluster.frames import (
    ANSWER,
    DURABLE,
    LETTER,
    MESSAGE,
    Behind,
    Entry,
    Facts,
    Frame,
    Seen,
    read,
    write,
)
from holdfast.cluster.letters import (
    Done,
    Inbox,
    Received,
    SentLetters,
    letter,
)
from holdfast.cluster.log import Addressed, Log, Parts, parts_of
from holdfast.cluster.places import Place, place_of
from holdfast.cluster.reader_port import Gap, Move, NotTaken, Sorted
from holdfast.cluster.reading import LogReader
from holdfast.cluster.trimming import Trim, Trimming
from holdfast.delivery.basics.ignoring import ignore
from holdfast.delivery.messages.message import Message
from holdfast.store import log_scripts, scripts
from holdfast.store.keys import RedisKeys
from holdfast.store.link import Answer
from holdfast.store.log_scripts import Step
from holdfast.store.reply_errors import ScriptFailed, StoreRefused, WentBack
from holdfast.store.resp import Word
from holdfast.store.script import Script
from holdfast.store.scripts import ScriptCall
from holdfast.store.unanswered_calls import UnansweredCalls
from tests.store.store_process import BASE, DEPLOYMENT

_NOTES = "audit"


class Sent:
    """A call on the link."""

    def __init__(
        self, script: Script, keys: Sequence[Word], args: Sequence[Word], done: Answer
    ) -> None:
        self.script, self.keys, self.args, self.done = script, keys, list(args), done
        self.may_be_refused = False
        self.reply: object = None


class LossyLink:
    """A link that carries out calls in order, and repeats what it has no answer to."""

    def __init__(self, world: "World", tag: str) -> None:
        self.world = world
        self.tag = tag
        self.sent: list[Sent] = []

    def script(
        self,
        script: Script,
        keys: Sequence[Word],
        args: Sequence[Word],
        done: Answer,
        *,
        may_be_refused: bool = False,
    ) -> None:
        call = Sent(script, keys, args, done)
        call.may_be_refused = may_be_refused
        self.sent.append(call)

    def flush(self) -> None:
        pass

    def carry_out(self, count: int) -> None:
        for call in [each for each in self.sent if each.reply is None][:count]:
            if call.may_be_refused and self.world.is_full(self.tag):
                call.reply = StoreRefused("OOM")
            else:
                call.reply = self.world.run(call.script, call.keys, call.args)

    def answer(self, count: int) -> None:
        for _ in range(count):
            if not self.sent or self.sent[0].reply is None:
                return
            call = self.sent.pop(0)
            call.done(call.reply)

    def lose(self) -> None:
        """Lose the connection with all answers that are on their way."""
        for call in self.sent:
            call.reply = None
            # What the store may have carried out is repeated until it is.
            call.may_be_refused = False


class Shard:
    """A process: it has a log, and reads those of others."""

    def __init__(self, world: "World", number: int) -> None:
        self.world = world
        self.number = number
        self.keys = world.keys[number]
        self.link = LossyLink(world, self.keys.meta)
        self.calls = UnansweredCalls(
            self.link, on_refused=self._lose, on_answered=self._open_if_lost
        )
        self.is_dead = self.is_lost = False
        self.former: list[str] = []
        self.epoch = ""
        self.log = Log(self)
        self.letters = SentLetters(self.log.pass_on)
        self.inbox = Inbox(self._do)
        # Letters that a full store did not let this process do.
        self.undone: list[Received] = []
        others = [other for other in world.keys if other != number]
        self.trimming = Trimming(others, keep_s=world.keep_s, beat_s=0.2)
        self.readers: dict[int, LogReader[Entry]] = {}
        self._open(instead_of=())
        self.reading: dict[int, tuple[str, Any]] = {}
        self.gaps: dict[int, int] = defaultdict(int)
        self.passing: dict[int, list[int]] = defaultdict(list)
        self.took: dict[int, list[int]] = defaultdict(list)
        self.begun: dict[int, Place] = {}
        meta = world.hash(self.keys.meta)
        for other in world.keys:
            if other != number:
                place = meta.get(f"place {other}", "")
                self.begun[other] = place_of(place)
                # A process that starts loads what those before it took.
                self.took[other] = world.taken(number, other)
                end = place_of(world.hash(world.keys[other].meta).get("log", ""))
                self.readers[other] = LogReader(
                    Port(self, other),
                    own=number,
                    place=place,
                    passed=meta.get(f"passed {other}", ""),
                    since=end,
                )

        inbox: Any = world.redis.hgetall(self.keys.inbox)
        for name, stored in inbox.items():
            [each] = read(stored).all_entries()
            self.inbox.take(int(name.split()[0]), each)

    # Letters

    def send_letter(self) -> None:
        id = self.world.new_id(self.number)
        asking = letter("keep", id, b"")
        other = self.world.random.choice([*self.readers])
        self.world.asked.add(id)
        self.letters.send(asking, other, self.world.now, partial(self._heard, id))

    def _heard(self, id: int, answer: bytes | None) -> None:
        if answer is not None:
            self.world.answered.add(id)

    def _do(self, received: Received) -> None:
        """Keep a message with the id of the letter, and answer."""
        if self.is_lost or self.is_dead:
            self.undone.append(received)
            return
        answer = Entry(ANSWER, "", received.entry.id, "", 0, b".")
        done = Done(received.name, answer, received.sender)

        def answered(reply: object) -> None:
            if isinstance(reply, Exception):
                self.undone.append(received)
            else:
                self.inbox.forget(received.name)
                self._appended(1, [done.shard])

        first, *others = self.world.doing(self.keys, done)
        self.calls.make(first, answered, may_be_refused=True, may_be_skipped=True)
        for call in others:
            self.calls.make(call, ignore)

    # The right to write

    def _open(self, instead_of: Sequence[str]) -> None:
        call = scripts.open_store(
            self.keys,
            seed="seed",
            node="n",
            nonce=f"{self.world.random.getrandbits(32):08x}",
            deployment=DEPLOYMENT,
            instead_of=instead_of,
            above=int(self.epoch.rpartition("-")[2].partition(".")[0] or 0),
        )
        reply = self.world.run(call.script, call.keys, call.args)
        if isinstance(reply, ScriptFailed):
            self.is_dead = True
            return
        found = cast("list[bytes]", reply)
        self.former += [*found[4].decode().split(), *filter(None, [self.epoch])]
        self.epoch = found[0].decode()
        self.calls.begin(self.epoch)
        self.is_lost = False
        nonce, fence = self.epoch.rpartition(".")[2], int(self.epoch.split("-")[1].split(".")[0])
        stream: Any = self.world.redis.xrange(self.keys.log)
        frames = [
            (place_of(fields[b"before"].decode()), place_of(fields[b"place"].decode()), 100)
            for _, fields in stream
        ]
        links = self.world.hash(self.keys.links)
        end = place_of(self.world.hash(self.keys.meta).get("log", ""))
        self.trimming.begin(nonce, fence, end, frames, links, self.world.now)

    def _lose(self, why: ScriptFailed | WentBack) -> bool:
        is_back = isinstance(why, WentBack) or why.code == "BACK"
        assert not is_back or self.number in self.world.went_back, "it did not go back"
        if isinstance(why, ScriptFailed) and why.code == "EPOCH":
            found = str(why).partition(" ")[2]
            self.is_dead = self.is_dead or (found != "gone" and found not in self.former)
        self.is_lost = not self.is_dead
        return not self.is_dead

    def _open_if_lost(self) -> None:
        if self.is_lost and not self.calls:
            self._open(instead_of=[*self.former, self.epoch])
            if not self.is_dead:
                self.world.doubled |= self.world.unanswered[self.number]
                for _ in self.calls.make_changes_again():
                    pass
                for _ in self.calls.make_publishes_again():
                    pass
                self._tell()
                self.log.begin_again()

    def _tell(self) -> None:
        """Tell a store that went back what it took: this process has it in its queues."""
        for other, ids in self.took.items():
            lost = sorted({*ids} - {*self.world.taken(self.number, other)})
            if lost:
                # If this process is killed before the place follows, they are taken again.
                self.world.doubled |= {*lost}
                entries = [entry_of(message_of(id, other), DURABLE) for id in lost]
                self.calls.make(self.world.told(self.keys, other, entries), lambda _: None)

    # Writing

    def publish(self) -> None:
        if self.is_lost or self.is_dead:
            return
        ids = [self.world.new_id(self.number) for _ in range(self.world.random.randint(1, 3))]
        target = self.world.random.choice(["all", *map(str, self.readers)])
        self.world.targets |= dict.fromkeys(ids, target)
        messages = [message_of(id, self.number, target) for id in ids]
        entries = [Addressed(entry_of(message, DURABLE)) for message in messages]
        call = scripts.keep(self.keys, [(message, ["me/1"]) for message in messages])
        frame = log_scripts.Parts(len(entries), parts_of(entries))
        self.world.made[self.number] += ids
        self.world.unanswered[self.number] |= {*ids}

        def done(reply: object) -> None:
            self.world.unanswered[self.number] -= {*ids}
            if not isinstance(reply, Exception):
                self.world.accepted[self.number] += ids
                needing = self.readers if target == "all" else [int(target)]
                self._appended(len(ids), needing)

        appending = self.world.with_frame(self.keys, call, frame)
        self.calls.make(appending, done, may_be_refused=True, is_publish=True, may_be_skipped=True)

    def _appended(self, count: int, needing: Iterable[int]) -> None:
        self.trimming.appended(self.calls.answered, count, 100, needing, self.world.now)

    def pass_on(self) -> None:
        message = message_of(self.world.new_id(self.number), self.number)
        self.log.pass_on(entry_of(message, 0))

    @property
    def is_available(self) -> bool:
        return not (self.is_lost or self.is_dead)

    def append(self, count: int, parts: Parts, done: Callable[[bool], None]) -> None:
        call = log_scripts.append(self.keys, log_scripts.Parts(count, parts))

        def answered(reply: object) -> None:
            is_there = not isinstance(reply, Exception)
            if is_there:
                self._appended(count, ())
            done(is_there)

        self.calls.make(call, answered, may_be_refused=True, may_be_skipped=True)

    def append_facts(
        self, facts: Facts, parts: Parts, done: Callable[[Place | None], None]
    ) -> None:
        call = log_scripts.append_facts(self.keys, facts, log_scripts.Parts(len(facts), parts))

        def answered(_: object) -> None:
            self._appended(len(facts), self.readers if facts else ())

        self.calls.make(call, answered)

    # Reading

    def read(self, other: int) -> None:
        reader = self.readers[other]
        if reader.is_looking:
            meta = self.world.hash(self.world.keys[other].meta)
            link = self.world.hash(self.world.keys[other].links).get(reader.looks_at, "")
            reader.looked(meta.get("openings", ""), self.world.now, link)
        elif other in self.reading:
            after, found = self.reading.pop(other)
            reader.heard(after, found, self.world.now)
        else:
            next_read = reader.next_read(self.world.now)
            if next_read is not None:
                self.reading[other] = next_read, self.world.read(other, next_read)

    def tick(self) -> None:
        for other, reader in self.readers.items():
            if not self.is_lost:
                reader.tick(self.world.now)
            self.log.see(other, reader.confirmed, reader.awaited)
        self.log.tick(self.world.now)
        self.letters.tick(self.world.now)
        undone, self.undone = self.undone, []
        for received in undone:
            self._do(received)
        trim = None if self.is_lost else self.trimming.tick(self.world.now)
        if trim is not None:
            trim = self.world.trims(trim, self.number)
            self.world.removed += len(trim.removed)
            self.calls.make(log_scripts.trim_log(self.keys, *trim), lambda _: None)


class Port:
    """What a reader does to its shard: one session gets everything that is durable."""

    def __init__(self, shard: Shard, other: int) -> None:
        self.shard, self.other = shard, other

    def sort(self, frame: Frame, *, is_new: bool) -> Sorted[Entry]:
        entries = frame.all_entries()
        if any(each.kind != MESSAGE for each in entries):
            return Sorted((), [each for each in entries if each.kind == LETTER], entries, 0)
        ours = ("/all", f"/{self.shard.number}")
        durable = [each for each in entries if each.flags & DURABLE]
        passing = [each for each in entries if not each.flags & DURABLE] if is_new else []
        kept = [each for each in durable if each.channel.endswith(ours)]
        return Sorted(passing, kept, durable, sum(len(each.data) for each in kept))

    def take(
        self, move: Move, kept: Sequence[Entry], done: Callable[[NotTaken | None], None]
    ) -> None:
        shard = self.shard

        def answered(reply: object) -> None:
            if isinstance(reply, list):
                shard.world.refused += 1
                done(NotTaken(reply[2].decode()))
            elif isinstance(reply, Exception):
                done(NotTaken(None))
            else:
                messages = [entry.id for entry in kept if entry.kind == MESSAGE]
                shard.took[self.other] += messages
                done(None)

        answer: Answer = answered
        for call in shard.world.takes(shard.keys, Step(self.other, *move), kept):
            shard.calls.make(call, answer, may_be_refused=True, may_be_skipped=True)
            # Broken variants make two calls.
            answer = ignore

    def may_show(self, behind: Behind) -> bool:
        return not behind

    def show_at_once(self, _: Place, entries: Sequence[Entry]) -> None:
        self.shard.passing[self.other] += [entry.id for entry in entries]

    def show(self, _: Place, entries: Sequence[Entry]) -> None:
        for entry in entries:
            if entry.kind == LETTER:
                self.shard.inbox.take(self.other, entry)
            elif entry.kind == ANSWER:
                self.shard.letters.answered(entry)

    def learn(self, place: Place, facts: Facts, seen: Seen) -> None:
        if self.shard.number in seen:
            self.shard.trimming.saw(self.other, seen[self.shard.number], self.shard.world.now)

    def showed_at_once(self) -> None:
        """Nothing comes another way."""

    def note_gap(self, gap: Gap) -> None:
        self.shard.gaps[self.other] += 1

    def complain(self, why: str) -> None:
        raise AssertionError(why)


class World:
    """All shards and their stores; broken variants override single parts."""

    faults: Sequence[str] = ("lose", "lose", "kill", "rival", "copy", "back", "full", "room")
    # How long frames stay after all have taken them.
    keep_s = 1000.0
    has_letters = False

    def __init__(self, redis: Redis, seed: int, shards: int) -> None:
        redis.flushall()
        self.redis = redis
        self.random = random.Random(seed)
        self.now = 0.0
        self.keys = {number: RedisKeys("test", shard=number) for number in range(shards)}
        self.made: dict[int, list[int]] = defaultdict(list)
        self.accepted: dict[int, list[int]] = defaultdict(list)
        self.unanswered: dict[int, set[int]] = defaultdict(set)
        # What a store that went back may have lost, or got twice.
        self.lost: set[int] = set()
        self.doubled: set[int] = set()
        self.went_back: set[int] = set()
        self.full: set[str] = set()
        # How many calls had another place than the store.
        self.refused = 0
        # For which shard a message is, or for all; how many frames were removed from within logs.
        self.targets: dict[int, str] = {}
        self.removed = 0
        # Letters that were sent, and those that were answered.
        self.asked: set[int] = set()
        self.answered: set[int] = set()
        self._ids = 0
        self._all: set[int] = set()
        self._notes = 0
        self._copies: dict[int, tuple[dict[bytes, bytes], int]] = {}
        self._scripts: dict[Script, Any] = {}
        self.seen: set[str] = set()
        self.shards = [Shard(self, number) for number in self.keys]
        # Processes that another one has replaced, and that do not know it yet.
        self.rivals: list[Shard] = []

    # The store

    def source(self, script: Script) -> str:
        return script.source

    def run(self, script: Script, keys: Sequence[Word], args: Sequence[Word]) -> object:
        if script not in self._scripts:
            self._scripts[script] = self.redis.register_script(self.source(script))
        try:
            return self._scripts[script](keys=keys, args=args)
        except ResponseError as error:
            return ScriptFailed(str(error).split(" ")[0], str(error))

    def is_full(self, tag: str) -> bool:
        return tag in self.full and self.random.random() < 0.7

    def hash(self, key: str) -> dict[str, str]:
        found: Any = self.redis.hgetall(key)
        return {name.decode(): value.decode() for name, value in found.items()}

    def read(self, shard: int, after: str) -> list[tuple[bytes, Any]]:
        most = self.random.randint(1, 6)
        found: Any = self.redis.xread({self.keys[shard].log: after}, count=most)
        return found[0][1] if found else []

    def with_frame(self, keys: RedisKeys, call: ScriptCall, frame: log_scripts.Parts) -> ScriptCall:
        return log_scripts.with_frame(keys, call, frame)

    def takes(self, keys: RedisKeys, step: Step, kept: Sequence[Entry]) -> list[ScriptCall]:
        """The calls that take a frame: one."""
        letters = {f"{step.shard} {e.id}": write([e]) for e in kept if e.kind == LETTER}
        kept = [each for each in kept if each.kind == MESSAGE]
        messages = [(message_of(each.id, step.shard), ["joe/1"]) for each in kept]
        call = log_scripts.take(keys, [step], messages, letters=letters)
        return [self.noted(keys, call, step.shard, kept) if kept else call]

    def doing(self, keys: RedisKeys, done: Done) -> list[ScriptCall]:
        """The calls that do a letter: one."""
        parts = {str(done.shard): write([done.answer])}
        message = message_of(done.answer.id, done.shard)
        call = scripts.keep(keys, [(message, ["letters/1"])])
        frame = log_scripts.Parts(1, parts, [done.name])
        return [self.noted(keys, log_scripts.with_frame(keys, call, frame), -1, [done.answer])]

    def told(self, keys: RedisKeys, shard: int, entries: Sequence[Entry]) -> ScriptCall:
        """The call that stores messages which were taken before."""
        messages = [(message_of(each.id, shard), ["joe/1"]) for each in entries]
        return self.noted(keys, log_scripts.take(keys, [], messages), shard, entries)

    def noted(
        self, keys: RedisKeys, call: ScriptCall, shard: int, kept: Sequence[Entry]
    ) -> ScriptCall:
        """The call with a note that says in which order it was made, and what it took."""
        self._notes += 1
        note = orjson.dumps([shard, [each.id for each in kept]])
        assert call.script.with_note is not None
        names = [*call.keys, keys.notes(_NOTES)]
        return ScriptCall(call.script.with_note, names, [*call.args, self._notes, note])

    def trims(self, trim: Trim, shard: int) -> Trim:
        """What a shard removes from its log."""
        return trim

    def taken(self, shard: int, of: int) -> list[int]:
        """What a shard took from the log of another one, in order."""
        notes = self.hash(self.keys[shard].notes(_NOTES))
        found = [orjson.loads(notes[number]) for number in sorted(notes, key=int)]
        return [id for source, ids in found if source == of for id in ids]

    def copy(self, shard: int) -> None:
        """Remember the state of a store, to which it may go back."""
        names: Any = self.redis.keys(self.keys[shard].meta[: -len("meta")] + "*")
        dumps = {name: cast("bytes", self.redis.dump(name)) for name in names}
        self._copies[shard] = dumps, len(self.accepted[shard])

    def go_back(self, shard: int) -> None:
        if shard not in self._copies:
            return
        dumps, accepted = self._copies.pop(shard)
        tag = self.keys[shard].meta[: -len("meta")]
        names: Any = self.redis.keys(tag + "*")
        if names:
            self.redis.delete(*names)
        for name, dump in dumps.items():
            self.redis.restore(name, 0, dump)
        self.lost |= {*self.accepted[shard][accepted:]}
        for process in self.shards:
            if process.number == shard:
                # Their answers are on their way.
                done = [each for each in process.link.sent if each.reply is not None]
                self.lost |= {id for each in done for id in self._all.intersection(each.args)}
        self.went_back.add(shard)
        self.seen.add("back")

    def new_id(self, shard: int) -> int:
        self._ids += 1
        self._all.add(id := BASE + 1000 * self._ids + shard)
        return id

    # What happens

    def run_for(self, steps: int, *, faults: bool = True) -> None:
        for _ in range(steps):
            self.now += self.random.random() * 0.03
            self._step(faults)

    def _step(self, faults: bool) -> None:
        shard = self.random.choice([*self.shards, *self.rivals])
        if shard.is_dead:
            self._replace(shard)
            return
        ordinary: list[Callable[[], None]] = [
            shard.publish,
            shard.pass_on,
            shard.tick,
            lambda: shard.link.carry_out(self.random.randint(1, 5)),
            lambda: shard.link.carry_out(self.random.randint(1, 5)),
            lambda: shard.link.answer(self.random.randint(1, 5)),
            *[partial(shard.read, other) for other in shard.readers] * 3,
        ]
        if self.has_letters:
            ordinary.append(shard.send_letter)
        if faults and self.random.random() < 0.12:
            self._fail(shard)
        else:
            self.random.choice(ordinary)()

    def _fail(self, shard: Shard) -> None:
        number = shard.number
        fault = self.random.choice(self.faults)
        if fault == "lose":
            shard.link.lose()
        elif fault == "kill":
            shard.is_dead = True
            self._replace(shard)
        elif fault == "rival" and shard in self.shards:
            self.rivals.append(shard)
            self.shards[self.shards.index(shard)] = Shard(self, number)
        elif fault == "copy":
            self.copy(number)
        elif fault == "back" and not any(each.number == number for each in self.rivals):
            self.go_back(number)
        elif fault == "full":
            self.full.add(shard.keys.meta)
        elif fault == "room":
            self.full.discard(shard.keys.meta)

    def _replace(self, shard: Shard) -> None:
        if shard in self.rivals:
            self.rivals.remove(shard)
        else:
            self.shards[self.shards.index(shard)] = Shard(self, shard.number)

    def drain(self) -> None:
        """Let everything arrive: nothing fails any more, and each log is read to its end."""
        self.full.clear()
        self.rivals.clear()
        for _ in range(200):
            self.let_go_on()
            if self._is_drained():
                return
        raise AssertionError("what is in the logs does not arrive")

    def let_go_on(self) -> None:
        """Let all shards work for a moment."""
        self.now += 0.3
        for shard in [*self.shards]:
            if shard.is_dead:
                self._replace(shard)
                continue
            for other in shard.readers:
                for _ in range(4):
                    shard.read(other)
            shard.tick()
            shard.link.carry_out(99)
            shard.link.answer(99)

    def _is_drained(self) -> bool:
        ends = {number: self.hash(keys.meta).get("log", "") for number, keys in self.keys.items()}
        return all(
            not (shard.calls or shard.is_lost or shard.undone)
            and all(
                not self.redis.xread({self.keys[other].log: reader.place.id}, count=1)
                and reader.place.nonce == place_of(ends[other]).nonce
                for other, reader in shard.readers.items()
            )
            for shard in self.shards
        )

    def check(self) -> None:
        """Nothing is lost, nothing is doubled, and each log was taken in its order."""
        done = [id for number in self.keys for id in self.taken(number, -1)]
        assert len(done) == len({*done}), "a letter was done twice"
        assert self.answered <= {*done} <= self.asked, "a letter was answered but not done"
        assert not any(shard.inbox for shard in self.shards), "letters are not done"
        for number in self.keys:
            for shard in self.shards:
                if shard.number != number:
                    self._check(self.taken(shard.number, number), number, shard.number)
                    self._check_books(shard, number)

    def _check(self, taken: list[int], of: int, shard: int) -> None:
        wanted = {id for id, target in self.targets.items() if target in ("all", str(shard))}
        assert {*taken} <= {*self.made[of]} & wanted
        missing = {*self.accepted[of]} & wanted - {*taken} - self.lost
        assert not missing, f"{len(missing)} lost"
        counted = {id: taken.count(id) for id in taken}
        doubled = {id for id, count in counted.items() if count > 1} - self.doubled
        assert not doubled, f"{len(doubled)} doubled"
        once = [id for id in taken if id not in self.doubled]
        assert once == sorted(once), "out of order"

    def _check_books(self, shard: Shard, of: int) -> None:
        if of in self.went_back or shard.number in self.went_back:
            return
        reader = shard.readers[of]
        assert shard.gaps[of] == 0
        assert reader.missing == 0
        passed = reader.taken + reader.skipped
        assert shard.begun[of].total + passed == reader.place.total
        assert reader.place == place_of(self.hash(self.keys[of].meta).get("log", ""))
        passing = shard.passing[of]
        assert passing == sorted({*passing}), "passing entries doubled or out of order"


def message_of(id: int, shard: int, target: str = "all") -> Message:
    message = Message(b"{}", id=id, channel=f"/of/{shard}/{target}")
    message.is_durable = True
    return message


def entry_of(message: Message, flags: int) -> Entry:
    return Entry(MESSAGE, message.channel, message.id, "ann", flags, message.wire)
