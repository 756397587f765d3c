"""Clients that publish several messages in one request, of which some must be refused.

Who receives them refuses some of each batch, too, and does not say of all what became of them.
"""

import asyncio
import random
from collections.abc import Callable, Sequence

from tests.simulation.actors import Plan
from tests.simulation.gluttons import LIMITS
from tests.simulation.judges.batches import CHANNEL, Batches
from tests.simulation.oracle import Oracle
from tests.simulation.refusing import DEAD
from tests.simulation.session import Session, ask_all
from tests.simulation.talker import Denied, Lost, Message, Talker
from tests.simulation.tokens import VAULT
from tests.simulation.workers import LATER, Trade

TRADE = Trade(
    patterns=(CHANNEL,),
    verdicts={None: 0.7, LATER: 0.15, **dict.fromkeys(DEAD[:3], 0.05)},
    delays_ms=(100, 600, 2_000),
    options=({},),
    turns=False,
    leaves_open=0.5,
)
_PAUSE_S = 0.3
# How many messages are in a request, how many of them must be refused, and how many of the others
# are stored; how many requests need no session.
_MOST, _WRONG, _DURABLE, _POSTS = 5, 0.3, 0.7, 0.25


def _too_large(key: str) -> Message:
    return {"channel": CHANNEL, "data": {"key": key, "x": "x" * LIMITS["max_message_size"]}}


def _too_deep(key: str) -> Message:
    nested: object = 1
    for _ in range(LIMITS["max_depth"]):
        nested = [nested]
    return {"channel": CHANNEL, "data": {"key": key, "x": nested}}


def _too_late(key: str) -> Message:
    options = {"delivery": {"delay": LIMITS["max_delay"] + 1}}
    return {"channel": CHANNEL, "data": {"key": key}, "ext": options}


def _to_no_channel(key: str) -> Message:
    return {"channel": random.choice(("lots", "/lots//a")), "data": {"key": key}}


def _to_a_pattern(key: str) -> Message:
    return {"channel": "/lots/*", "data": {"key": key}}


def _to_the_vault(key: str) -> Message:
    return {"channel": VAULT, "data": {"key": key}}


# What must be refused, with the error that is due.
_BAD: Sequence[tuple[str, Callable[[str], Message]]] = (
    ("message_too_large", _too_large),
    ("message_too_deep", _too_deep),
    ("delivery_invalid", _too_late),
    ("channel_invalid", _to_no_channel),
    ("channel_invalid", _to_a_pattern),
)
_DENIED = ("publish_denied", _to_the_vault)


class Batcher:
    """Publishes again and again what is good and what is not, in one request."""

    def __init__(self, name: str, plan: Plan, oracle: Oracle, truth: Batches) -> None:
        self._name = name
        self._plan = plan
        self._oracle = oracle
        self._truth = truth
        self._session = Session(plan.manners, f"{name}/1")
        self._poster = Talker(plan.manners.doors, "/publish")
        self._bad = _BAD if plan.manners.log_in is None else (*_BAD, _DENIED)
        self._serial = 0
        # What must be published again, before anything else.
        self._left: list[Message] = []
        # Whether everything it published is accepted.
        self.is_done = False

    async def run(self) -> None:
        """Publish until the plan is over, and all is accepted."""
        while not self._plan.is_over or self._left:
            await self._publish()
            await asyncio.sleep(self._plan.pause_s * 6 * random.random())
        self.is_done = True

    async def _publish(self) -> None:
        """Publish what is left, or something new between messages that must be refused."""
        posts = not self._left and random.random() < _POSTS
        good = self._left or [self._good(posts=posts) for _ in range(random.randint(1, _MOST))]
        sent = [("", each) for each in good]
        for _ in range(_MOST):
            if random.random() < _WRONG:
                sent.insert(random.randint(0, len(sent)), self._wrong())
        dues, messages = [due for due, _ in sent], [each for _, each in sent]
        try:
            replies = await self._ask(messages, dues, posts=posts)
        except (Lost, Denied):
            self._truth.unsure(map(_key_of, good))
            self._left = [each for each in good if _insists(each)]
            await asyncio.sleep(_PAUSE_S * random.random())
            return
        self._left = []
        for due, message, reply in zip(dues, messages, replies, strict=True):
            if not due:
                self._heed(message, reply)
        self._truth.answered(dues, replies)

    def _heed(self, message: Message, reply: Message) -> None:
        if reply["successful"]:
            self._oracle.accepted(_key_of(message), str(reply["ext"]["delivery"]["id"]))
            return
        self._truth.unsure([_key_of(message)])
        if _insists(message):
            self._left.append(message)

    async def _ask(
        self, messages: Sequence[Message], dues: Sequence[str], *, posts: bool
    ) -> list[Message]:
        self._serial += 1
        sent = [{"id": f"{self._serial}.{n}", **each} for n, each in enumerate(messages)]
        if not posts:
            if not self._session.client_id:
                await self._session.begin()
                self._oracle.begun(self._name, self._session.client_id)
            return await self._session.send_all(sent, dues)
        try:
            return await ask_all(self._poster, self._plan.manners, "", sent, dues)
        except Lost:
            self._poster.hang_up()
            raise

    def _good(self, *, posts: bool) -> Message:
        """Return a message that must be accepted; without a session it is another publisher's."""
        key, is_durable = self._next_key(), random.random() < _DURABLE
        insists, publisher = (
            is_durable and not posts,
            f"{self._name} posts" if posts else self._name,
        )
        self._oracle.publishes(
            *(key, publisher, self._serial, CHANNEL), is_durable=is_durable, is_repeated=insists
        )
        delivery: Message = {"persistent": is_durable, **({"key": key} if insists else {})}
        return {"channel": CHANNEL, "data": {"key": key}, "ext": {"delivery": delivery}}

    def _wrong(self) -> tuple[str, Message]:
        due, make = random.choice(self._bad)
        return due, make(self._truth.wrong(self._next_key()))

    def _next_key(self) -> str:
        self._serial += 1
        return f"{self._name}-{self._serial}"


def _key_of(message: Message) -> str:
    return str(message["data"]["key"])


def _insists(message: Message) -> bool:
    return "key" in message["ext"]["delivery"]
