"""Plays a seed: a deployment with clients, what goes wrong in it, and what came of it."""

import asyncio
import tempfile
import time
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from holdfast.store.format.layouts import LAYOUTS
from tests.simulation.actors import Plan, Publisher, Receiver
from tests.simulation.cast import Actor, Cast
from tests.simulation.deployment import Deployment
from tests.simulation.dividing import Division
from tests.simulation.faults import (
    KEEP_CONTACTS,
    LONG_WORLDS,
    LOSE_LINKS,
    Fault,
    Stage,
    restart,
    set_clock,
)
from tests.simulation.former_release import FormerRelease, watch
from tests.simulation.host_faults import LOSE_LINKS_OF_HOSTS
from tests.simulation.judges.bench import Bench
from tests.simulation.judges.facts import Facts
from tests.simulation.logging_in import Entrance
from tests.simulation.oracle import CLIENTS, Oracle
from tests.simulation.process import Main, Process
from tests.simulation.schedule import Schedule, schedule
from tests.simulation.server import adapted
from tests.simulation.session import Manners
from tests.simulation.small import small_limits
from tests.simulation.store_site import Kind, StoreSite
from tests.simulation.tokens import Issuer
from tests.simulation.world import World

_STORE_EPOCH_S = 1_800_000_000.0
_SERVERS = ("10.0.0.1", "10.0.0.2", "10.0.0.3")
_CHANNELS = ("/a", "/b")
_SHARED = "data"
# Where all shards are, if they have the same clocks.
_MACHINE = "workers"
# How long after a fault a link may still be given up.
_HEALS_S = 5.0
# How long after a fault somebody may still have lost contact.
_MEET_AGAIN_S = 15.0
# How long everything may take to drain after the last fault has ended.
_DRAIN_S = 30.0
_LOOK_S = 0.25
# When an operator divides the deployment, and how long it may take when nothing goes wrong.
_DIVIDES_S, _DIVIDED_S = (2.0, 25.0), 120.0
# How long after that the books may take to balance, if another promise is broken: clients go on
# then, and a shard may store up to a second later what it has taken.
_BALANCE_S = 10.0
# How many broken promises of each kind are told.
_MOST_TOLD = 10
_POLL_S = (2.0, 5.0, 10.0)
_PAUSE_S = (0.1, 0.3, 1.0)
# How many receivers come later than the others, and until when.
_LATE, _LATEST_S = 0.4, 12.0
_ANSWER_S = (1.0, 5.0)
# How often servers of one machine give connections to each other.
_GIVES = 0.7
# How often an earlier release that has left the store comes back, and how long that takes at most.
_GOES_BACK, _GONE_BACK_S = 0.6, 60.0
IN_FORMER_LAYOUT = "a store was in an earlier layout"
# How many sessions begin over WebSockets: often none, so that clients have two connections.
_SOCKETS = (0.0, 0.0, 0.4, 0.9)


@dataclass(frozen=True, slots=True)
class Setting:
    """What the seed does not decide."""

    kind: Kind = Kind.SINGLE
    # Whether each server is a shard, and not a rival of the others.
    has_shards: bool = False
    # Whether an operator divides the deployment among another number of shards.
    divides: bool = False
    # Whether servers have a supervisor, instead of what stands for one.
    is_supervised: bool = False
    # Whether several machines have the shards, each below a supervisor.
    has_hosts: bool = False
    # Which groups of clients take part, if the seed does not decide.
    groups: frozenset[str] = frozenset()
    # The names of the faults that may happen, if not all may; and which of a seed's do not.
    faults: frozenset[str] = frozenset()
    without: frozenset[int] = frozenset()
    keeps_trace: bool = False


@dataclass(slots=True)
class Result:
    """What came of a seed."""

    seed: int
    digest: str
    violations: list[str]
    steps: int = 0
    true_s: float = 0.0
    cpu_s: float = 0.0
    published: int = 0
    faults: list[str] = field(default_factory=list)
    trace: list[str] = field(default_factory=list)
    marks: frozenset[str] = frozenset()
    # How often judges looked at something, and what excused how often what was not right.
    judged: Counter[str] = field(default_factory=Counter)
    excused: Counter[str] = field(default_factory=Counter)


class Play:
    """A deployment in a world of its own."""

    def __init__(self, world: World, home: Path, setting: Setting) -> None:
        random = world.random
        self._world = world
        self._setting = setting
        has_shards = setting.has_shards
        cast = Cast(
            world.seed,
            is_full=has_shards,
            is_abroad=setting.has_hosts,
            divides=setting.divides,
            groups=setting.groups,
        )
        issuer = Issuer(lambda: world.now) if cast.has_logins else None
        world.has_right_walls = cast.has_logins
        named = [f"rec{n}" for n in range(random.randint(1, 3))]
        plain = [f"plain{n}" for n in range(random.randint(0, 2))]
        self.oracle = Oracle(lambda: world.now, [*named, *plain])
        site = StoreSite(world, setting.kind, self._wall)
        self._named = frozenset(named)
        self.oracle.lost_tails = site.lost_tails
        self.oracle.has_one_copy = not setting.kind.has_replicas
        poll_s = random.choice(_POLL_S)
        count = random.choice((2, 2, 3) if has_shards else (1, 2, 2))
        if setting.has_hosts:
            # One for each host at least.
            count = random.choice((3, 3, 4))
        is_embedded = setting.kind is Kind.EMBEDDED
        self._deployment = deployment = Deployment(
            *(world, home, self.oracle, site),
            count=1 if is_embedded and not has_shards else count,
            has_shards=has_shards,
            is_one_machine=has_shards and cast.is_on_one_machine,
            poll_s=poll_s,
            is_supervised=setting.is_supervised or is_embedded,
            has_hosts=setting.has_hosts,
            has_operators=cast.has_operators,
            further=issuer.settings(home) if issuer is not None else {},
        )
        # No other server can have such a store.
        self.oracle.leases.are_needed = self.oracle.leases.are_needed and not is_embedded
        self.oracle.ends_of = deployment.ends_of
        self._books = deployment.books
        books, oracle = deployment.books, self.oracle
        facts = Facts(
            now=lambda: world.now,
            letters=books.letters,
            kept=books.kept,
            home_of=deployment.home_of_id,
            stands_by=deployment.stands_by,
            may_have_lost=oracle.may_have_lost,
            may_be_gone=oracle.may_be_gone,
            mark=world.coverage.mark,
        )
        self.bench = Bench(facts, oracle.leases)
        if cast.upgrades:
            former = world.random.choice(LAYOUTS[:-1]).number
            site.begin_in(former, deployment.division)
            world.coverage.mark(IN_FORMER_LAYOUT)
            self.bench.judge_layouts(former, books)
        self.bench.has_groups = cast.has_groups
        self.bench.deliveries.are_embedded = is_embedded
        self.oracle.may_overtake = self.bench.order.may_overtake
        if not setting.divides:
            self.bench.order.stores_of = deployment.stores_of
        for unit in deployment.units:
            unit.excuses = self.bench.excuses
        for post in deployment.posts:
            post.excuses = self.bench.excuses
        self.stage = Stage(world, self.oracle, deployment, site, self.bench.excuses)
        site.on_lost = self._lose_store
        self.stage.has_long_faults = Random(f"{world.seed} long").random() < LONG_WORLDS
        self._former = self._former_release()
        self._division = Division(self.stage, deployment) if setting.divides else None
        # With TLS, connections would stay where they are.
        world.network.gives = Random(f"{world.seed} gives").random() < _GIVES
        sockets = Random(f"{world.seed} sockets").choice(_SOCKETS)
        manners = Manners(
            *(deployment.doors, self.bench, poll_s, random.choice(_ANSWER_S), sockets),
            issuer.of_cast if issuer is not None else None,
        )
        channels = _CHANNELS + cast.channels
        self.plan = Plan(manners, channels, random.choice(_PAUSE_S), named if has_shards else ())
        self._cast = cast
        self._cast.make(
            *(self.plan, self.oracle, self._books, self.bench.refusals, self.bench.operations),
            *(self.bench.batches, self.bench.deliveries),
            *(deployment.token_at, self.bench.layouts),
            Entrance(issuer, self.bench.logins) if issuer is not None else None,
        )
        self._publishers = [
            Publisher(f"pub{n}", self.plan, self.oracle) for n in range(random.randint(1, 3))
        ]
        self._receivers = [
            Receiver(
                *(name, self.plan, self.oracle, self.bench.deliveries),
                is_named=name in named,
                begins_after_s=random.uniform(0, _LATEST_S) if random.random() < _LATE else 0.0,
            )
            for name in (*named, *plain)
        ]
        # When the last fault ended.
        self._over_at = 0.0
        self.schedule: Schedule

    def _former_release(self) -> FormerRelease | None:
        """Return the release that has left the store, if it comes back, and knows such stores."""
        truth, posts = self.bench.layouts, self._deployment.posts
        if truth is None or not posts or self._setting.has_shards:
            return None
        comes_back = self._world.random.random() < _GOES_BACK
        return FormerRelease(self.stage, posts, truth) if comes_back else None

    def _lose_store(self) -> None:
        """Note that servers do not reach the store any more."""
        now = self._world.now
        self.oracle.cut_off += [(place.process, now) for place in self.stage.places]

    def _wall(self) -> float:
        return _STORE_EPOCH_S + self._world.now

    def run(self) -> None:
        """Run until everything has drained, or should have."""
        world = self._world
        self._deployment.start()
        world.start(CLIENTS, _running([*self._publishers, *self._receivers, *self._cast.actors]))
        setting = self._setting
        self.schedule = schedule(
            self.stage,
            has_shards=setting.has_shards,
            divides=setting.divides,
            among=setting.faults,
            without=setting.without,
        )
        self.schedule.begin(self.stage)
        self.bench.know(
            *(self.schedule, self.stage.struck),
            has_shards=setting.has_shards,
            has_hosts=setting.has_hosts,
        )
        division = self._division
        if division is not None:
            world.later(world.random.uniform(*_DIVIDES_S), division.begin)
        if (layouts := self.bench.layouts) is not None:
            watch(self.stage, layouts)
        former = self._former
        if former is not None:
            former.begin_in_time()
        happened = {each.fault for each in self.schedule.occurrences}
        self._cast.trusts_clocks = set_clock not in happened
        self.oracle.judges_repeats = self.schedule.is_sudden
        if setting.has_shards:
            self.oracle.lost_links = self._times(LOSE_LINKS | LOSE_LINKS_OF_HOSTS, _HEALS_S)
            faults = {each.fault for each in self.schedule.occurrences}
            self.oracle.lost_contacts = self._times(faults - KEEP_CONTACTS, _MEET_AGAIN_S)
            self.oracle.restarts = self._times((restart,), 0.0)
        self._over_at = self.schedule.over_at_s
        world.run_for(self._over_at - world.now)
        self._deployment.let_recover()
        self._over_at = max(self._over_at, world.now)
        if division is not None:
            world.run_until(lambda: division.is_over, _DIVIDED_S)
            if not division.is_over:
                # Replays refuse it as long as new ones begin.
                self.plan.is_over = True
                world.run_until(lambda: division.is_over, _DIVIDED_S)
            self._over_at = world.now
        if former is not None:
            world.run_until(lambda: former.is_over, _GONE_BACK_S)
            self._over_at = max(self._over_at, world.now)
        self.plan.is_over = True
        while not self._is_drained() and world.now < self._over_at + _DRAIN_S:
            world.run_for(_LOOK_S)
        while self._books.unsettled() and world.now < self._over_at + _DRAIN_S + _BALANCE_S:
            world.run_for(_LOOK_S)

    def _times(self, faults: Collection[Fault], longer_s: float) -> list[tuple[float, float]]:
        """Return from when until when such faults have effects."""
        return [
            (each.at_s, each.at_s + each.duration_s + longer_s)
            for each in self.schedule.occurrences
            if each.fault in faults
        ]

    def _is_drained(self) -> bool:
        publishers = [*self._publishers, *self._cast.publishers]
        are_done = all(each.is_done for each in publishers)
        if not are_done or not self.oracle.is_drained(self._over_at):
            return False
        judges = self.bench.refusals, self.bench.operations, self.bench.batches
        if any(each.unfinished(self.oracle.published) for each in judges):
            return False
        if self.bench.layouts is not None and self.bench.layouts.is_under_way:
            return False
        return not self._cast.violations(self._over_at) and not self._books.unsettled()

    @property
    def _have_one_clock(self) -> bool:
        """Whether all servers had the same clock, which nobody has set."""
        has_one = self._setting.has_shards or self.oracle.had_one_speaker
        return (
            self._cast.trusts_clocks
            and has_one
            and (self._cast.is_on_one_machine or not self._setting.has_shards)
        )

    def violations(self) -> list[str]:
        """Return all broken promises."""
        over_at = self._over_at
        is_divided = self._division is None or self._division.is_over
        return [
            *(() if is_divided else ("liveness: the deployment is not divided",)),
            *self.oracle.violations(over_at),
            *self._cast.violations(over_at)[:_MOST_TOLD],
            *self._books.unsettled(),
            *self.bench.violations(
                *(self.oracle.published, self._named),
                self.oracle.had_one_speaker,
                [each.process for each in self._deployment.places],
                have_one_clock=self._have_one_clock,
            )[:_MOST_TOLD],
        ]


def _running(actors: Sequence[Actor]) -> Main:
    async def run(_: Process) -> None:
        async with asyncio.TaskGroup() as group:
            for each in actors:
                group.create_task(each.run())

    return run


def play(seed: int, setting: Setting = Setting()) -> Result:
    """Play a seed."""
    began_s = time.process_time()
    with (
        tempfile.TemporaryDirectory() as home,
        adapted(),
        World(seed, keeps_trace=setting.keeps_trace) as world,
        small_limits(seed, world.coverage),
    ):
        played = Play(world, Path(home), setting)
        with played.bench.sitting():
            played.run()
        failed = [f"{at:.3f} {who} failed: {what}" for at, who, what in world.failures]
        result = Result(
            seed,
            world.trace.digest,
            [*played.violations(), *failed],
            world.trace.steps,
            world.now,
            time.process_time() - began_s,
            len(played.oracle.published),
            [str(each) for each in played.schedule.occurrences],
            world.trace.lines,
            frozenset(world.coverage.marks),
            played.bench.excuses.judged,
            played.bench.excuses.used,
        )
        # Nothing else refers to what the world ends with: it is collected there, unheard.
        del played
        return result
