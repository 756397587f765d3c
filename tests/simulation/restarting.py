"""A restart of all servers of a simulated deployment, as a supervisor does it, step by step."""

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from functools import partial

from holdfast.compose.cannot_start import CannotStart
from holdfast.compose.succession import CannotGoOn, CannotLeave
from holdfast.store.links.connection import StoreUnavailable
from holdfast.supervisor.control import LOCK
from tests.simulation.process import Life, Process
from tests.simulation.server import Inherited, Post
from tests.simulation.world import World

# How long a step may take, and how long the supervisor takes to hear of it and to ask for the next.
_PATIENCE_S, _NOTICE_S = 20.0, 0.002
# When a supervisor kills a process that says nothing while clients wait for it.
_AWAITED_S = 5.0


class Step(Enum):
    """How far a restart is. Each step is taken by all servers before the next."""

    PREPARING = "preparing"
    LEAVING = "leaving"
    OPENING = "opening"
    # It cannot be taken back any more.
    SERVING = "serving"
    OVER = "over"


class Successor(Inherited):
    """What a starting server of a restart inherits, and what it waits for."""

    is_successor = True

    def __init__(self, restart: "Restart", post: Post, descriptors: Mapping[str, int]) -> None:
        super().__init__()
        self.descriptors = descriptors
        self._restart = restart
        self._post = post
        self._go_on: asyncio.Event | None = None

    async def prepared(self) -> None:
        await self._reached(Step.LEAVING)

    async def opened(self) -> None:
        await self._reached(Step.SERVING)

    async def _reached(self, next_step: Step) -> None:
        go_on = self._go_on = asyncio.Event()
        self._restart.reached(self._post, next_step)
        await go_on.wait()
        if self._restart.step is Step.OVER:
            raise CannotStart("the restart was given up")

    def go_on(self) -> None:
        """Let it take the next step."""
        if self._go_on is not None:
            self._go_on.set()


class Restart:
    """Replaces all servers together; if that fails before they serve, the old ones go on.

    Args:
        hangs: Whether a new server freezes when it is to open its store.
    """

    def __init__(self, world: World, posts: Sequence[Post], *, hangs: bool = False) -> None:
        self._world = world
        self._posts = [*posts]
        self._hangs = hangs
        self.step = Step.PREPARING
        self._old = {post: post.process for post in posts}
        self._new: dict[Post, Process] = {}
        self._successors: dict[Post, Successor] = {}
        # Those that have taken the step.
        self._done: set[Post] = set()
        # Of the old servers that have settled: lets each come to rest.
        self._settled: dict[Post, asyncio.Event] = {}
        # Of the old servers that were asked to leave: whether each has left.
        self._leaving: dict[Post, asyncio.Task[bool]] = {}

    @property
    def successors(self) -> list[Process]:
        """The new processes that run."""
        return [each for each in self._new.values() if each.life is not Life.ENDED]

    def begin(self) -> None:
        """Start the successors, unless a server does not serve now."""
        if any(
            post.is_restarting or post.is_stopped or post.server is None for post in self._posts
        ):
            return
        for post in self._posts:
            post.is_restarting = True
            lock = os.dup(post.succession.kept[LOCK])
            successor = self._successors[post] = Successor(self, post, {LOCK: lock})
            self._new[post] = post.begin(successor, partial(self._serves, post))
            self._new[post].on_ended = partial(self._new_ended, post)
            self._old[post].on_ended = partial(self._old_ended, post)
        self._expect()

    def _expect(self) -> None:
        """Give the step up if it takes too long."""
        step = self.step

        def look() -> None:
            if self.step is step:
                self.fail()

        self._world.later(_PATIENCE_S, look)

    def reached(self, post: Post, next_step: Step) -> None:
        """Note that the server of a post has done what comes before a step."""
        if self.step is Step.OVER:
            # It waits until it is killed.
            return
        self._done.add(post)
        if len(self._done) == len(self._posts):
            self._done.clear()
            self._world.later(_NOTICE_S, partial(self._take, next_step))

    def _take(self, step: Step) -> None:
        if self.step is Step.OVER:
            return
        self.step = step
        self._expect()
        if step is Step.LEAVING:
            for post in self._posts:
                self._ask(post, partial(self._begin_to_leave, post))
            return
        if step is Step.OPENING and self._hangs:
            hanging = self._world.random.choice(self.successors)
            hanging.freeze()
            self._world.later(_AWAITED_S, hanging.kill)
        if step is Step.SERVING:
            self._world.coverage.mark("all servers were succeeded")
        for post, successor in self._successors.items():
            self._new[post].call(successor.go_on)

    def _ask(self, post: Post, what: Callable[[], object]) -> None:
        self._old[post].call(what)

    async def _rest(self, post: Post) -> None:
        """Wait until all servers have settled, or until the restart is given up."""
        if self.step is Step.OVER:
            return
        may_rest = self._settled[post] = asyncio.Event()
        if len(self._settled) == len(self._posts):
            self._world.later(_NOTICE_S, self._let_rest)
        await may_rest.wait()

    def _let_rest(self) -> None:
        for post, may_rest in self._settled.items():
            self._ask(post, may_rest.set)

    def _begin_to_leave(self, post: Post) -> None:
        post.succession.rest = partial(self._rest, post)
        self._leaving[post] = asyncio.get_running_loop().create_task(self._leave(post))

    async def _leave(self, post: Post) -> bool:
        assert post.server is not None
        try:
            await post.server.leave()
        except (CannotLeave, StoreUnavailable):
            # It has gone on.
            self._world.coverage.mark("a server could not leave")
            self._world.later(_NOTICE_S, self.fail)
            return False
        except CannotGoOn:
            self._ends()
            return False
        self.reached(post, Step.OPENING)
        return True

    def _serves(self, post: Post) -> None:
        """Note that a new server serves; the old ones end when all do."""
        # A server without others serves as soon as it has opened its store.
        is_alone = len(self._posts) == 1
        if self.step is Step.SERVING or (is_alone and self.step is Step.OPENING):
            self._done.add(post)
            if len(self._done) == len(self._posts):
                self._end()

    def _end(self) -> None:
        self.step = Step.OVER
        for post, process in self._old.items():
            process.on_ended = lambda: None
            process.kill()
            post.take_over(self._new[post])

    def _old_ended(self, post: Post) -> None:
        if self.step is not Step.OVER:
            self.fail()

    def _new_ended(self, post: Post) -> None:
        if self.step is not Step.OVER:
            self.fail()

    def fail(self) -> None:
        """End the restart: old servers go on, or new ones do if that is too late."""
        if self.step is Step.OVER:
            return
        if self.step is Step.SERVING:
            # Whichever has ended is started again.
            self._end()
            return
        self.step = Step.OVER
        self._let_rest()
        self._world.coverage.mark("a restart failed")
        for process in self._new.values():
            process.on_ended = lambda: None
            process.kill()
        for post, process in self._old.items():
            process.on_ended = post.start_again
            post.is_restarting = post in self._leaving and process.life is not Life.ENDED
            if process.life is Life.ENDED:
                post.start_again()
            elif post in self._leaving:
                self._ask(post, partial(self._begin_to_take_back, post))

    def _begin_to_take_back(self, post: Post) -> None:
        post.taking_back = asyncio.get_running_loop().create_task(self._take_back(post))

    async def _take_back(self, post: Post) -> None:
        # One after the other, as a server does what its supervisor asks for.
        if await self._leaving[post]:
            self._world.coverage.mark("a server was taken back")
            assert post.server is not None
            try:
                await post.server.take_back()
            except CannotGoOn:
                self._ends()
        post.is_restarting = False

    def _ends(self) -> None:
        """Note that an old server ends by itself, and another one is started for it."""
        self._world.coverage.mark("a server could neither leave nor go on")
        self._world.later(_NOTICE_S, self.fail)


def kill_successor(restart: Restart, choose: Callable[[Sequence[Process]], Process]) -> None:
    """Let the restart fail, if it is not over."""
    if restart.step is not Step.OVER and (found := restart.successors):
        choose(found).kill()
