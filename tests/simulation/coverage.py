"""What happened in simulated worlds: marks that a long run must have reached."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from math import sqrt
from statistics import fmean

from holdfast.store.format import log_scripts, scripts
from holdfast.store.format.keys import RedisKeys
from holdfast.store.links.script import Script
from holdfast.store.opening import lease_keeper
from tests.simulation.store.command import Words
from tests.simulation.store.replies import Failure, Reply

# A judge excuses a third of what it sees at most: as a mean over worlds, so that a client that asks
# again and again in one of them counts as much as others.
_MOST_EXCUSED = 1 / 3
# The last calls of an opening that a script has carried out, and the one that it is asked for.
_CALL = re.compile(rb"^\S+ (\w+)-0*(\d+) ")
_RUN = frozenset((b"EVALSHA", b"EVAL"))
_OF_DATA = re.compile(r" with .*")
_FACTS = RedisKeys("holdfast").facts.encode().rpartition(b"}")[2]
# What a store says where a script could not do what it was asked for.
_REFUSALS = {
    b"BACK": "a store went back",
    b"EPOCH": "a server was fenced off",
    b"REFUSED": "a refused call was repeated",
    b"OOM": "a store had no memory",
    b"MISCONF": "a store had no disk",
    b"READONLY": "a former primary refused a call",
}


class Coverage:
    """Collects marks in one world."""

    def __init__(self) -> None:
        self.marks: set[str] = set()
        # How many messages servers have published by themselves.
        self.own_messages = 0
        # The machines whose server opens its store now, each with the facts that it has read.
        self._opening: dict[str, set[bytes]] = {}
        # The random texts of all openings.
        self._nonces: set[bytes] = set()

    def mark(self, what: str) -> None:
        """Note that this has happened."""
        self.marks.add(what)

    def serves(self, machine: str) -> None:
        """Note that the server of this machine has read everything, and serves."""
        self._opening.pop(machine, None)

    def command(self, machine: str, words: Words, reply: Reply) -> None:
        """Note a command that a store has carried out for a machine, or refused."""
        what = words[0]
        if what in _RUN:
            count = int(words[2])
            self._ran(machine, words[1], words[3 : 3 + count], words[3 + count :], reply)
        elif what == b"HGETALL" and machine in self._opening and words[1].endswith(_FACTS):
            self._opening[machine].add(words[1])

    def _ran(self, machine: str, script: bytes, keys: Words, args: Words, reply: Reply) -> None:
        name = _NAMES.get(script)
        if name is None:
            return
        self.marks.add(f"script {name}")
        if isinstance(reply, Failure):
            self._refused(bytes(reply))
        elif name == "open":
            self._opened(machine, args[4])
        elif name == "append_facts":
            self._told(machine, keys)
        before = reply[0] if isinstance(reply, list) and reply else reply
        if isinstance(reply, list) and len(reply) > 1 and reply[1] == b"PLACE":
            self.marks.add("a place was another one")
        if isinstance(before, bytes) and args and _is_repeat(args[0], before):
            self.marks.add(f"repeated {name}")

    def _opened(self, machine: str, nonce: bytes) -> None:
        self._opening[machine] = set()
        if nonce in self._nonces:
            self.marks.add("repeated open")
        self._nonces.add(nonce)

    def _refused(self, failure: bytes) -> None:
        for code, what in _REFUSALS.items():
            if failure.startswith(code):
                self.marks.add(what)

    def _told(self, machine: str, keys: Words) -> None:
        """Note in which order a shard tells something, and another one opens its store."""
        for other, known in self._opening.items():
            if other != machine:
                order = "behind" if keys[1] in known else "before"
                self.marks.add(f"told {order} what an opening reads")


def _is_repeat(call: bytes, before: bytes) -> bool:
    found = _CALL.match(call)
    if found is None:
        return False
    process, _, number = before.partition(b" ")[0].partition(b"-")
    return process == found[1] and number.isdigit() and int(number) >= int(found[2])


def _named() -> Iterator[tuple[bytes, str]]:
    every: list[Script] = [*scripts.SCRIPTS, *log_scripts.LOG_SCRIPTS]
    every += [each for each in vars(lease_keeper).values() if isinstance(each, Script)]
    for script in every:
        for one in filter(None, (script, script.with_note)):
            name = _OF_DATA.sub("", one.name)
            yield from ((one.sha.encode(), name), (one.source.encode(), name))


_NAMES = dict(_named())


def _by_judge(counts: Mapping[str, int]) -> Counter[str]:
    """Return sums by the first word of each name."""
    found: Counter[str] = Counter()
    for what, count in counts.items():
        found[what.partition(" ")[0].rstrip(":")] += count
    return found


class Report:
    """Counts in how many worlds each mark was reached."""

    def __init__(self, required: Iterable[str]) -> None:
        self._required = frozenset(required)
        self._reached: Counter[str] = Counter()
        self._judged: Counter[str] = Counter()
        self._excused: Counter[str] = Counter()
        # Which share of what a judge looked at it has excused, in each world.
        self._shares: dict[str, list[float]] = defaultdict(list)

    def add(self, marks: Iterable[str]) -> None:
        """Count the marks of a world."""
        self._reached.update(marks)

    def count(self, judged: Mapping[str, int], excused: Mapping[str, int]) -> None:
        """Count what judges have looked at in a world, and what they have excused."""
        self._judged.update(judged)
        self._excused.update(excused)
        seen, forgiven = _by_judge(judged), _by_judge(excused)
        for judge, count in seen.items():
            # One thing may be excused many times: a hold, for each message that came meanwhile.
            share = min(1.0, forgiven[judge] / count) if count else 0.0
            self._shares[judge].append(share)

    @property
    def asleep(self) -> list[str]:
        """The judges that have excused too much of what they saw: by chance, few worlds may."""
        return sorted(
            judge
            for judge, shares in self._shares.items()
            if fmean(shares) > _MOST_EXCUSED + 1 / sqrt(len(shares))
        )

    @property
    def missing(self) -> list[str]:
        """The marks that no world has reached, although a long run must."""
        return sorted(self._required - self._reached.keys())

    def lines(self) -> Iterator[str]:
        """Yield a table."""
        for mark, count in sorted(self._reached.items()):
            yield f"{count:6}  {mark}"
        for mark in self.missing:
            yield f"     -  {mark}"
        for kind, counts in (("judged", self._judged), ("excused", self._excused)):
            for what, count in sorted(counts.items()):
                yield f"{count:6}  {kind} {what}"
        for judge, shares in sorted(self._shares.items()):
            yield f"{fmean(shares):6.1%}  of what the judge of each {judge} saw is excused"
