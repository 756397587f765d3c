"""Playing a story against a server."""

import asyncio
from typing import Protocol

import aiohttp
from multidict import CIMultiDict

from tests.conversations.runner.actors import Actor
from tests.conversations.runner.matching import (
    Mismatch,
    Names,
    expect,
    expect_text,
    filled_in,
    short,
    shown,
)
from tests.conversations.runner.notation import JSON, Fields, NotationError
from tests.conversations.runner.onlooker import Onlooker, onlooker_of
from tests.conversations.runner.stories import Act, Body, Hear, Pass, Say, Step, Stop, Story
from tests.conversations.runner.wire import Heard, turns_of_the_loop

# Requests on another connection after which the server has surely read what was sent before.
ROUND_TRIPS = 4

# The operators' token, which served.py gives to its servers.
OPERATOR = "the-operators-of-all-these-stories"

# Settings whose values the server tells its clients, as servers of stories have them.
TOLD: dict[str, JSON] = {
    "timeout": 30000,
    "interval": 0,
    "transports": ["websocket", "long-polling", "callback-polling"],
}


class Server(Protocol):
    """What a story is played against."""

    @property
    def url(self) -> str: ...

    async def stop(self) -> None: ...


async def replay(story: Story, transport: str, server: Server) -> None:
    """Raise an AssertionError that shows the story so far and what was wrong."""
    async with onlooker_of(server.url) as onlooker:
        stage = Stage(story, transport, server, onlooker)
        try:
            await stage.play()
        finally:
            await stage.clear()


class Stage:
    def __init__(self, story: Story, transport: str, server: Server, onlooker: Onlooker) -> None:
        self._story = story
        self._transport = transport
        self._server = server
        self._onlooker = onlooker
        told = {name: story.settings.get(name, value) for name, value in TOLD.items()}
        self._names: Names = {
            "transport": transport,
            "server": server.url,
            "operator": OPERATOR,
            **told,
        }
        self._actors: dict[str, Actor] = {}
        self._played: list[str] = []

    async def play(self) -> None:
        for step in self._story.steps_on(self._transport):
            self._played.append(f"{step.line:5}  {step.text}")
            try:
                await self._perform(step)
            except (AssertionError, OSError, aiohttp.ClientError, NotationError) as error:
                raise AssertionError(self._report(error)) from None
        await self._nothing_is_left()

    async def clear(self) -> None:
        for actor in self._actors.values():
            await actor.close()

    async def _perform(self, step: Step) -> None:
        match step:
            case Say():
                await self._say(step)
            case Hear():
                await self._hear(step)
            case Pass(milliseconds=milliseconds):
                await asyncio.sleep(milliseconds / 1000)
            case Act():
                await self._act(step)
            case Stop():
                await self._server.stop()
            case _:
                raise NotationError(f"nobody knows how to perform {step.text}")

    async def _say(self, step: Say) -> None:
        actor = self._actor(step.who)
        headers = CIMultiDict((name, filled_in(value, self._names)) for name, value in step.headers)
        await actor.say(step.content, request=step.request, headers=headers, is_held=step.is_held)
        if step.is_held:
            await self._round_trips()
            self._has_heard_nothing(actor, newest_only=True)

    async def _hear(self, step: Hear) -> None:
        actor = self._actor(step.who)
        patterns: list[Fields] = []
        if not isinstance(step.content, Body):
            patterns = actor.expectations(step.content, is_held=step.is_held)
        if not patterns:
            actor.forget_unanswered(is_held=step.is_held)
        heard = await actor.wire.hear(
            len(patterns), is_held=step.is_held, is_frame=step.outcome == "frame"
        )
        expected = step.outcome or "200"
        if heard.outcome != expected:
            raise Mismatch("outcome", expected, f"{heard.outcome} {heard.body}".strip())
        for name, pattern in step.headers:
            self._expect_header(heard, name, pattern)
        if isinstance(step.content, Body):
            expect_text(step.content.text, heard.body, self._names, "body")
        elif patterns:
            self._expect_messages(patterns, heard.messages)

    def _expect_header(self, heard: Heard, name: str, pattern: str) -> None:
        values = heard.headers.getall(name, [])
        if pattern == "absent":
            if values:
                raise Mismatch(name, "no such header", str(values))
            return
        for value in values:
            try:
                expect_text(pattern, value, self._names, name)
            except Mismatch:
                continue
            return
        raise Mismatch(name, pattern, str(values))

    def _expect_messages(self, patterns: list[Fields], messages: list[JSON]) -> None:
        for at, (pattern, message) in enumerate(zip(patterns, messages, strict=False), start=1):
            try:
                expect(pattern, message, self._names)
            except Mismatch as mismatch:
                raise AssertionError(
                    f"message {at} of {len(messages)}: {mismatch}\n"
                    f"  expected {shown(pattern, self._names)}\n"
                    f"       got {short(message)}"
                ) from None
        if len(patterns) != len(messages):
            raise Mismatch("messages", str(len(patterns)), f"{len(messages)}: {short(messages)}")

    async def _act(self, step: Act) -> None:
        actor = self._actor(step.who)
        match step.verb:
            case "is held" | "hears nothing":
                await self._is_held(actor, step.what)
            case "drops":
                await actor.drop()
                await self._round_trips()
            case "closes":
                await actor.close()
                await self._round_trips()
            case "stops reading":
                actor.read_on(False)
            case "reads again":
                actor.read_on(True)
            case "forgets the cookies":
                actor.jar.clear()
            case "shares the cookies of":
                actor.share_cookies_of(self._actor(step.what))
            case "speaks":
                actor.transport = step.what
            case verb:
                raise NotationError(f"nobody knows how to {verb}")

    async def _is_held(self, actor: Actor, how_long: str = "") -> None:
        if how_long:
            await asyncio.sleep(int(how_long.split()[1]) / 1000)  # "for 100 ms"
        else:
            await self._round_trips()
        self._has_heard_nothing(actor)

    def _has_heard_nothing(self, actor: Actor, *, newest_only: bool = False) -> None:
        early = actor.answered_early(newest_only=newest_only)
        if early is not None:
            raise AssertionError(f"{actor.name} is not held but hears {early}")

    async def _round_trips(self) -> None:
        """Wait until the server has dealt with everything that was sent, without sleeping."""
        for _ in range(ROUND_TRIPS):
            await self._onlooker.ask()
        await turns_of_the_loop()

    async def _nothing_is_left(self) -> None:
        if not self._story.ends_the_server:
            await self._round_trips()
        for actor in self._actors.values():
            unheard = actor.unheard()
            if unheard is not None:
                raise AssertionError(
                    self._report(AssertionError(f"the story is over but {actor.name}: {unheard}"))
                )

    def _actor(self, name: str) -> Actor:
        if name not in self._actors:
            self._actors[name] = Actor(name, self._server.url, self._transport, self._names)
        return self._actors[name]

    def _report(self, error: Exception) -> str:
        chapter, line = self._story.chapter.name, self._played[-1].split()[0]
        reason = str(error) or type(error).__name__
        return "\n".join([self._story.title, *self._played, f"{chapter}:{line}: {reason}"])
