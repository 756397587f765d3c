"""Clients that go on whatever happens to their workers, and keep books of what they got."""

import asyncio
import random
from collections import Counter
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, Final

import aiohttp

from tests.web.people import Json, Person

# On each channel: work, news for all, and orders for one of them.
CHANNELS: Final = ("/jobs", "/news", "/orders")
MESSAGES: Final = 60
# Of these, one of so many is delivered later.
DELAYED_EACH: Final = 4
# What is not stored: a kill loses some of it, so nobody keeps books of it.
GOSSIP: Final = "/gossip"
# Requests for all, whose first reply counts, or for one of them; and requests that are work.
QUESTIONS, CHORES = "/questions", "/chores"
REQUESTS: Final = 30
# Of what sessions without a name do, the last second before a kill is not stored.
NAMES: Final = ("ann", "bob", "dan", "eve", "joe", "sue")
ASKING: Final = ("kim", "lou")
# What clients meet while their worker is away.
_BROKEN: Final = (aiohttp.ClientError, AssertionError, LookupError, RuntimeError, ValueError)


class Question:
    """A request, and what came of it: by the id of what came, the error, or nothing."""

    def __init__(self, name: str, number: int) -> None:
        self.number = number
        self.channel = (QUESTIONS, CHORES)[number % 2]
        self.is_for_one = number % 4 == 2
        self.key = f"{name} {number}"
        self.told: dict[str, str] = {}
        # How often it was asked without a reply that says what became of it.
        self.attempts_lost = 0

    @property
    def is_told_well(self) -> bool:
        """Whether it has ended, once for each attempt at most, and was answered once at most."""
        answered = sum(not error for error in self.told.values())
        return answered <= 1 <= len(self.told) <= 1 + self.attempts_lost


class Town:
    """Publishers, and sessions that work, listen, ask and answer."""

    def __init__(self, url: str, seed: int) -> None:
        self._url = url
        self._seed = seed
        self.chance = random.Random(seed)
        # The books of those who get it: how often each message came, and who refused which.
        self.came: Counter[str] = Counter()
        self.refused: set[tuple[str, str]] = set()
        # The books of those who ask, and of those who answer.
        self.questions: list[Question] = []
        self.answers: Counter[str] = Counter()
        self._listening: set[str] = set()
        self.is_over = False

    def going_on(self) -> list[Coroutine[Any, Any, None]]:
        """What those do that go on until it is over."""
        return [self._work(f"{name}/1") for name in NAMES]

    def saying(self) -> list[Coroutine[Any, Any, None]]:
        """What those do that end when they have said all they have to say."""
        publishing = [self._publish(channel) for channel in CHANNELS]
        return [*publishing, self._gossip(), *map(self._ask, ASKING)]

    @property
    def has_heard_all(self) -> bool:
        return len(self.came) == len(CHANNELS) * MESSAGES

    async def _all_listen(self) -> None:
        while len(self._listening) < len(NAMES):  # noqa: ASYNC110 - clients know no events
            await asyncio.sleep(0.1)

    # Publishing

    async def _publish(self, channel: str) -> None:
        """Publish each message until it is accepted."""
        await self._all_listen()
        person = Person(self._url)
        async with person.http:
            for number in range(MESSAGES):
                delivery: Json = {"key": f"{self._seed}{channel}{number}"}
                if channel == "/orders":
                    delivery["destinations"] = [{"name": NAMES[number % len(NAMES)]}]
                if number % DELAYED_EACH == 0:
                    # Without any delay, a message would not move.
                    delivery["delay"] = self.chance.randrange(1, 1500)
                message: Json = {"channel": channel, "data": f"{channel} {number}"}
                message["ext"] = {"delivery": delivery}
                while not await self._is_accepted(person, message):  # noqa: ASYNC110
                    await asyncio.sleep(0.1)
                await asyncio.sleep(0.02)

    async def _gossip(self) -> None:
        """Publish to all who listen what is not stored, whether they get it or not."""
        await self._all_listen()
        person = Person(self._url)
        async with person.http:
            for number in range(2 * MESSAGES):
                message: Json = {"channel": GOSSIP, "data": number}
                message["ext"] = {"delivery": {"persistent": False}}
                await self._is_accepted(person, message)
                await asyncio.sleep(0.02)

    async def _is_accepted(self, person: Person, message: Json) -> bool:
        with suppress(*_BROKEN):
            if not person.client_id:
                await person.handshake()
            reply = await person.reply(**message)
            if reply["successful"]:
                return True
            if str(reply.get("error", "")).startswith("402"):
                person.client_id = ""
        return False

    # Working

    async def _work(self, session: str) -> None:
        """Get messages, some of which are refused, and answer requests, until all have come."""
        person = Person(self._url)
        async with person.http:
            while not self.is_over:
                with suppress(*_BROKEN):
                    await self._work_as(person, session)
                await asyncio.sleep(0.1)

    async def _work_as(self, person: Person, session: str) -> None:
        assert (await person.handshake(session))["successful"]
        for channel in ("/jobs", "/news", GOSSIP, QUESTIONS, CHORES):
            assert (await person.reply("/meta/subscribe", subscription=channel))["successful"]
        self._listening.add(session)
        ack, verdicts = 0, list[Json]()
        while not self.is_over:
            *events, reply = await person.connect(200, ack=ack, delivery={"verdicts": verdicts})
            if not reply["successful"]:
                return
            verdicts = []
            for event in events:
                if event["channel"] == GOSSIP:
                    continue
                if "replyTo" in event["ext"]:
                    await self._answer(person, event)
                    continue
                code = self._judged(session, event["data"])
                if code is not None:
                    seq = event["ext"]["delivery"]["seq"]
                    verdicts.append({"seq": seq, "errorCode": code})
            ack = reply["ext"]["ack"]
            await asyncio.sleep(self.chance.random() * 0.05)

    async def _answer(self, person: Person, event: Json) -> None:
        """Reply until the server has said of the reply what becomes of it."""
        while True:
            reply = await person.reply(event["ext"]["replyTo"], data="done")

            if reply["successful"] or not reply["error"].startswith("503"):
                self.answers[reply.get("error", "").partition(":")[0]] += 1
                return
            await asyncio.sleep(0.1)

    def _judged(self, session: str, data: str) -> str | None:
        """Return why a session refuses a message, if it does."""
        self.came[data] += 1
        if data.startswith("/news"):
            # It dies, however often it comes again until then.
            if (session, data) not in self.refused and self.chance.random() < 0.1:
                self.refused.add((session, data))
            return "user.update.error" if (session, data) in self.refused else None
        is_first = self.came[data] == 1
        return "communication.noConnection" if is_first and self.chance.random() < 0.1 else None

    # Asking

    async def _ask(self, name: str) -> None:
        """Ask, one after the other, until each request is accepted and has ended."""
        await self._all_listen()
        person, channel = Person(self._url), ""
        mine = [Question(name, number) for number in range(REQUESTS)]
        self.questions += mine
        waiting = mine[::-1]
        async with person.http:
            while not self.is_over:
                with suppress(*_BROKEN):
                    person.wants = {"request": channel or True}
                    reply = await person.handshake(f"{name}/1")
                    assert reply["successful"], reply
                    assert channel in ("", person.ret), "the reply channel is another one"
                    channel = person.ret
                    await self._ask_as(person, mine, waiting)
                    return
                await asyncio.sleep(0.1)

    async def _ask_as(self, person: Person, mine: list[Question], waiting: list[Question]) -> None:
        ack, is_over = 0, False
        while not is_over:
            is_over = all(each.told for each in mine)
            if waiting and await self._is_asked(person, waiting[-1]):
                waiting.pop()
            *events, reply = await person.connect(50, ack=ack)
            assert reply["successful"], reply
            for event in events:
                question = mine[int(event["channel"].rpartition("/")[2]) - 4_000_000]
                question.told[event["ext"]["delivery"]["id"]] = event.get("error", "")
            ack = reply["ext"]["ack"]

    async def _is_asked(self, person: Person, question: Question) -> bool:
        ext: Json = {"replyTo": f"{person.ret}/{4_000_000 + question.number}", "timeout": 20_000}
        ext["delivery"] = {"key": question.key}
        if question.is_for_one:
            ext["request"] = "one"
        # A worker that is killed now may have stored the request, and end it later.
        question.attempts_lost += 1
        reply = await person.reply(question.channel, data=question.key, ext=ext)
        if reply["successful"]:
            question.attempts_lost -= 1
        return bool(reply["successful"])
