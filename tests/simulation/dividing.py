"""Divides a simulated deployment among another number of shards, as an operator does it.

The operator stops all servers, and starts them when the command has come to its end. It is killed
now and then. Then the operator runs it again, or lets servers run before with what they find.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from enum import Enum
from functools import partial
from math import inf

from holdfast.compose.cannot_start import CannotStart
from holdfast.offline.divide import until_taken
from holdfast.offline.reshard import NotTaken, Plan, reshard
from holdfast.offline.tenure import holding
from holdfast.settings import Settings
from holdfast.store.links.connection import StoreUnavailable
from tests.simulation.cast import ALL_RULES
from tests.simulation.deployment import Deployment
from tests.simulation.faults import Stage
from tests.simulation.judges.excuses import DIVISION
from tests.simulation.network import End
from tests.simulation.process import Life, Process
from tests.simulation.server import Post
from tests.simulation.store.node import LAG_S

# The machine of the operator.
_OPERATOR = "operator"
# How many shards there may be, and how often the deployment is divided.
_COUNTS = (1, 2, 3, 3)
_DIVISIONS = (1, 1, 2)
# How long servers run between two divisions at most.
_CALM_S = 10.0
# How often the command is killed, and behind how many of its writes to stores at most.
_KILLS = (0, 0, 1, 1, 2, 3)
_MOST_WRITES = 512
# How often the store fails over when the command decides, how soon, and what is in its script.
_FAILS_OVER, _BEHIND_S, _DECIDES = 0.3, 0.1, b"Lets a shard enter a generation"
# How often servers run before a command that has failed is run again, and for how long the first
# time. What it waits for, such as the end of a replay, may take longer.
_SERVES_BETWEEN, _SERVES_S, _SERVES_AT_MOST_S = 0.4, 4.0, 32.0
_LOOK_S, _PAUSE_S = 0.05, 0.5
# How long replicas then follow later than usual.
_LAGS_S = 60.0
# How long after it links may be given up, and contacts lost.
_HEALS_S = 15.0


class Outcome(Enum):
    """How a run of the command ended."""

    DONE = "divided"
    UNTAKEN = "untaken"
    FAILED = "failed"
    KILLED = "killed"


class Division:
    """An operator who divides the deployment."""

    def __init__(self, stage: Stage, deployment: Deployment) -> None:
        self._stage = stage
        self._world = stage.world
        self._deployment = deployment
        self._left = stage.random.choice(_DIVISIONS)
        self._kills = stage.random.choice(_KILLS)
        self._serves_s = _SERVES_S
        self._target = 0
        self._rules = deployment.rules
        self._outcome = Outcome.KILLED
        self.is_over = False

    @property
    def _settings(self) -> Settings:
        return self._deployment.settings(0, _OPERATOR)

    def begin(self) -> None:
        """Stop all servers, and divide the deployment."""
        if any(post.is_restarting for post in self._deployment.posts):
            self._world.later(_LOOK_S, self.begin)
            return
        self._disturb()
        self._stop(self._deployment.posts, self._divide)

    def _disturb(self) -> None:
        """Let the oracle know from when on servers are away."""
        now = self._world.now
        self._stage.excuses.add(DIVISION, now, inf)
        for times in (self._stage.oracle.lost_links, self._stage.oracle.lost_contacts):
            times.append((now, inf))

    def _settle(self) -> None:
        """Let the oracle know when all are in contact again."""
        until = self._world.now + _HEALS_S
        self._stage.excuses.end(DIVISION, self._world.now)
        for times in (self._stage.oracle.lost_links, self._stage.oracle.lost_contacts):
            # What else goes wrong, perhaps later, keeps its times.
            times[:] = [(begin, until if end == inf else end) for begin, end in times]

    def _stop(self, posts: Sequence[Post], then: Callable[[], None]) -> None:
        for post in posts:
            post.stop()
        self._when_ended(posts, then)

    def _when_ended(self, posts: Sequence[Post], then: Callable[[], None]) -> None:
        if all(post.process.life is Life.ENDED for post in posts):
            then()
        else:
            self._world.later(_LOOK_S, partial(self._when_ended, posts, then))

    # The command

    def _divide(self) -> None:
        if not self._target:
            self._target = self._stage.random.choice(_COUNTS)
            self._rules = self._stage.random.choice(ALL_RULES)
        self._outcome = Outcome.KILLED
        process = self._world.start(_OPERATOR, self._reshard)
        process.on_ended = self._ended
        if self._stage.random.random() < _FAILS_OVER:
            self._fail_over_at_decision(process)
        if self._kills:
            self._kills -= 1
            self._kill_behind(process, int(_MOST_WRITES ** self._stage.random.random()))

    async def _reshard(self, process: Process) -> None:
        settings, homes = self._settings, self._deployment.homes(self._rules)
        try:
            async with holding(settings) as tenure:
                await reshard(tenure, settings, Plan(self._target, rules=True), homes=homes)
            self._deployment.rules = self._rules
            self._outcome = Outcome.DONE
        except NotTaken:
            self._outcome = Outcome.UNTAKEN
        except (CannotStart, StoreUnavailable) as error:
            process.world.note(process.name, f"cannot divide: {error}")
            self._outcome = Outcome.FAILED

    def _fail_over_at_decision(self, process: Process) -> None:
        """Replace the first shard's primary just behind the decision, if it has a replica."""
        stage, group = self._stage, self._stage.site.first
        is_over = False

        def watch(_: End, data: bytes) -> None:
            nonlocal is_over
            if not is_over and _DECIDES in data:
                is_over = True
                delay_s = _BEHIND_S * stage.random.random()
                self._world.later(delay_s, partial(stage.site.fail_over, group, stage.random))

        for replica in group.replicas:
            replica.lag_s = _BEHIND_S
            self._world.later(_LAGS_S, partial(setattr, replica, "lag_s", LAG_S))
        process.loop.on_write = watch

    def _kill_behind(self, process: Process, writes: int) -> None:
        """Kill the command behind so many of its writes."""
        left, write = writes, process.loop.on_write

        def count(end: End, data: bytes) -> None:
            nonlocal left
            write(end, data)
            left -= 1
            if left == 0:
                # Not before the callback has ended that writes.
                self._world.later(0.0, process.kill)

        process.loop.on_write = count

    def _ended(self) -> None:
        outcome, random = self._outcome, self._stage.random
        self._world.coverage.mark(f"a division ended: {outcome.value}")
        if outcome is Outcome.DONE:
            self._deployment.serve()
            self._settle()
            self._target = 0
            self._left -= 1
            self.is_over = not self._left
            if self._left:
                self._world.later(random.random() * _CALM_S, self.begin)
        elif outcome is Outcome.UNTAKEN:
            self._let_take()
        elif random.random() < _SERVES_BETWEEN:
            self._world.coverage.mark("servers ran behind a division that had failed")
            self._deployment.serve()
            self._world.later((1 + random.random()) / 2 * self._serves_s, self.begin)
            self._serves_s = min(2 * self._serves_s, _SERVES_AT_MOST_S)
        else:
            self._world.later(_PAUSE_S, self._divide)

    # Servers without clients

    def _let_take(self) -> None:
        """Run servers to which no client comes, until shards have taken everything."""
        posts = self._deployment.posts_aside()
        for post in posts:
            post.start()
        process = self._world.start(_OPERATOR, partial(self._wait, len(posts)))
        process.on_ended = partial(self._stop, posts, partial(self._took, posts))

    async def _wait(self, count: int, _: Process) -> None:
        with suppress(StoreUnavailable):
            await until_taken(self._settings, count)

    def _took(self, posts: Sequence[Post]) -> None:
        for post in posts:
            post.close()
        self._world.later(_PAUSE_S, self._divide)
