"""Everybody whose traffic is in the books, and the server that they use and that is killed."""

import json
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from random import Random
from typing import Any

from holdfast.journal.frame import decode
from holdfast.journal.unfold import unfold
from tests.integration.talker import Json
from tests.pipeline.bookkeeping.ledger import (
    Contact,
    Copy,
    End,
    Ledger,
    Message,
    Span,
    Step,
    now_us,
    until_now,
)
from tests.pipeline.bookkeeping.people import HOLDBACK, STUMBLE, Person, Verdict
from tests.pipeline.bookkeeping.stamps import NODE
from tests.pipeline.journals import Writer
from tests.serving import Server
from tests.store.servers import ValkeyServer

SUBJECT, SUBJECT_QUEUE = "pat", "pat/0"
JOBS, JOBS_QUEUE = "/jobs/a", "work:/jobs/a/0"
_SETTINGS: Json = {
    "journal": True,
    "max_interval": 300_000,
    "durable": "named",
    "channels": {"/jobs/*": {"work_queue": True}},
}
_REFUSALS = (
    Verdict("user.update.error", "order 17 of 'joe' is unknown"),
    Verdict("user.update.deadMessage", "no room for order 4"),
    Verdict("user.paper.empty"),
)
_POISON = Verdict("user.update.internalError", "cannot read it")
_OVERFLOW = "resource.overflow.queue.entries"
_TIMEOUT_S = 60.0
# In a request, the time that is left has room for ten digits. A server that does not know which
# numbers were used before a kill makes an address unique by a time in nanoseconds.
_TIMEOUT, _UNIQUE = 10**9, f"/{10**18}"


class Worker(Person):
    """Takes items of the work queue, one at a time; what it refuses is for others."""

    def give_up(self, copy: Copy, verdict: Verdict, span: Span) -> None:
        copy.move(JOBS_QUEUE)
        if verdict.code == "user.update.deadMessage":
            # It dies in the queue, to which a replay returns it.
            copy.die(verdict.code, verdict.text, span)

    def _arrived(self, event: Json, id: int, span: Span) -> Copy:
        copy = self._ledger.find(JOBS_QUEUE, id)
        assert copy is not None, event
        copy.move(self.name)
        return copy


class Requester(Person):
    """Gets replies, whose publishes it does not see."""

    def _arrived(self, event: Json, id: int, span: Span) -> Copy:
        known = event["ext"]["delivery"]
        sender = known.get("sender", "").removeprefix("client/") or None
        ext = {name: value for name, value in event["ext"].items() if name != "delivery"}
        sent = {**event, "ext": ext} if ext else {k: v for k, v in event.items() if k != "ext"}
        message = Message(id, event["channel"], sender, True, size_of(sent), span)
        return self._ledger.publish(message, [self.name])[0]


class Town:
    """The clients, and one server after the other."""

    def __init__(self, store: ValkeyServer, seed: int) -> None:
        self.dice = Random(seed)
        self.ledger = ledger = Ledger()
        self._store = store
        self._settings = {**_SETTINGS, "redis": store.url}
        self.server = Server(self._settings)
        self.poison: set[int] = set()
        # Verdicts that come before those of the dice.
        self.whims: list[Verdict] = []
        # Whether verdicts end a copy, until the next server.
        self.is_final = False
        self._serial = 0
        news = ("/orders/*", "/chat", "/poison")
        # Only these two get what is published just before a kill.
        self.ann = Person(ledger, self._judge, (*news, "/safe"), name="ann/1")
        few = {"queue": {"maxEntries": 8}}
        self.bob = Person(ledger, self._judge, (*news, "/safe"), name="bob/1", **few)
        self.eve = Person(ledger, self.judge_at_once, news)
        self.ola = Person(ledger, self._judge, news[:2], oneway=True)
        self.ida = Person(ledger, self._answer, ("/ask/a", "/ask/b"), name="ida/1")
        self.amy = Requester(ledger, self._agree, (), name="amy/1")
        one = {"queue": {"maxEntries": 1}}
        self.workers = [
            Worker(ledger, self._judge_work, (JOBS,), name=name, **one)
            for name in ("max/1", "eva/1")
        ]
        self.pat: Person | None = None
        # Publishes, and receives what shows that everything before is in the journal.
        self.tim = Person(ledger, self._agree, ("/tick",))
        self.subscribers = [self.ann, self.bob, self.eve, self.ola]
        for person in self.people():
            person.begin(self.server.url)

    def people(self) -> list[Person]:
        named = [self.ann, self.bob, self.ida, self.amy, *self.workers]
        return [*named, self.eve, self.ola, self.tim, *([self.pat] if self.pat else [])]

    # Verdicts

    def _agree(self, person: Person, copy: Copy) -> Verdict:
        return Verdict(is_explicit=self.dice.random() < 0.5)

    def judge_at_once(self, person: Person, copy: Copy) -> Verdict:
        if copy.message.id in self.poison:
            return _POISON
        if self.dice.random() < (0.2 if not copy.generation else 0.05):
            return self.dice.choice(_REFUSALS)
        return self._agree(person, copy)

    def _judge(self, person: Person, copy: Copy) -> Verdict:
        if self.whims:
            return self.whims.pop()
        luck = 1.0 if self.is_final else self.dice.random()
        if copy.message.id not in self.poison and luck < 0.05:
            return Verdict(HOLDBACK, "the printer is off")
        if copy.message.id not in self.poison and luck < 0.1:
            return Verdict(STUMBLE)
        return self.judge_at_once(person, copy)

    def _judge_work(self, person: Person, copy: Copy) -> Verdict:
        if self.dice.random() < 0.4:
            return self.dice.choice(_REFUSALS)
        return self._agree(person, copy)

    def _answer(self, person: Person, copy: Copy) -> Verdict:
        return Verdict()

    # Publishing

    def publish(
        self, channel: str, receivers: list[Person], *, by: Person | None = None, **options: Any
    ) -> list[Copy]:
        """Publish for these receivers; the copies. Those for which there is no room die."""
        by = by or self.tim
        full = [each.name for each in receivers if not each.has_room]
        message, span = self.sent(by, channel, **options)
        copies = self.ledger.publish(message, [each.name for each in receivers])
        for copy in copies:
            if copy.receiver in full:
                copy.die(_OVERFLOW, "", span)
        return copies

    def sent(
        self, by: Person, channel: str, ext: Json | None = None, **options: Any
    ) -> tuple[Message, Span]:
        """Publish; what is known of the message."""
        self._serial += 1
        data = {"tag": self._serial, "padding": "x" * self.dice.randrange(50)}
        since_us = now_us()
        reply = by.say(channel, data=data, ext={"delivery": options, **(ext or {})})
        assert reply["successful"], reply
        span, event = until_now(since_us), {"channel": channel, "data": data}
        if ext is not None:
            unique = _UNIQUE if self.ledger.last_kill_us else ""
            event["ext"] = {"replyTo": f"{ext['replyTo']}{unique}", "timeout": _TIMEOUT}
        id = int(reply["ext"]["delivery"]["rcvTimestamp"])
        is_durable = options.get("persistent", True)
        return Message(id, channel, by.name, is_durable, size_of(event), span), span

    # The server

    def admin(self, method: str, path: str, body: Json | None = None) -> Any:
        token = (self.server.data / "admin-token").read_text().strip()
        request = urllib.request.Request(
            f"{self.server.url}/admin/api/v1{path}",
            None if body is None else json.dumps(body).encode(),
            {"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
            method=method,
        )
        for _ in patience():
            try:
                with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as response:
                    return json.loads(response.read() or "null")
            except urllib.error.HTTPError as error:
                if error.code != HTTPStatus.TOO_MANY_REQUESTS:
                    raise
                time.sleep(int(error.headers["Retry-After"]))

    def letters(self, receiver: str) -> list[Json]:
        letters: list[Json] = self.admin("GET", f"/dead-letters?limit=500&receiver={receiver}")[
            "items"
        ]
        return letters

    def all_letters(self) -> Counter[tuple[int, str, str, int]]:
        """The message, receiver, code and generation of each letter that the server has."""
        found, path = Counter[tuple[int, str, str, int]](), "/dead-letters?limit=200"
        page = self.admin("GET", path)
        while True:
            for letter in page["items"]:
                id = int(letter["message"].rpartition("-")[2])
                receiver = letter["receiver"].removeprefix("client/")
                found[id, receiver, letter["code"], letter["generation"]] += 1
            if page["cursor"] is None:
                return found
            page = self.admin("GET", f"{path}&cursor={page['cursor']}")

    def letter_of(self, copy: Copy) -> str:
        """The id of the letter that a copy became."""
        id, generation = str(copy.message.id), copy.generation
        found = [
            letter["id"]
            for letter in self.letters(copy.receiver)
            if (letter["message"].rpartition("-")[2], letter["generation"]) == (id, generation)
        ]
        assert len(found) == 1, (copy, found)
        return str(found[0])

    def expired(self) -> int:
        with urllib.request.urlopen(f"{self.server.url}/metrics", timeout=_TIMEOUT_S) as response:
            text = response.read().decode()
        line = next(each for each in text.splitlines() if 'settled_total{outcome="expired"' in each)
        return int(float(line.split()[-1]))

    def write_down(self) -> None:
        """Wait until all events so far are in the journal, those in memory, too."""
        [copy] = self.publish("/tick", [self.tim], persistent=False)
        for _ in patience():
            if copy.end is not None:
                break
            self.tim.go_on()
        id, self.ledger.written_us = copy.message.id, copy.message.sent.since_us
        wait(lambda: has_ack(self._store, id))

    def kill(self) -> None:
        """Kill the server; everybody goes on with the next one."""
        since_us = now_us()
        self.ledger.last_kill_us = since_us
        self.server.process.kill()
        self.server.process.wait()
        self.server.stop()
        self.server, self.is_final = Server(self._settings), False
        span = until_now(since_us)
        self.ledger.forget_the_last()
        for copy in self.ledger.copies:
            # The server does not store who has refused an item.
            copy.refused_by.clear()
        for worker in self.workers:
            # If one refuses work before the other has come back, nobody is left to do it.
            worker.work = [work._replace(verdict=Verdict()) for work in worker.work]
        for person in self.people():
            for copy in self.ledger.open(person.name):
                if not (person.is_stored and copy.message.is_durable):
                    copy.settle(End.LOST, span)
            # What returns only because of another one is not flagged when it comes again.
            person.work = [
                work._replace(verdict=Verdict()) if work.stops else work
                for work in person.work
                if work.copy.end is None
            ]
            for work in person.work:
                work.copy.stay.is_unsure = True
            if person.is_stored:
                person.is_cut_off = True
                person.to_confirm = self.ledger.acked_lately(person.name, since_us)
                person.go_to(self.server.url)
            else:
                person.forget()
                person.begin(self.server.url)

    def lost_contact(self, person: Person, what: str, since_us: int) -> None:
        contact = Contact(person.name, what, until_now(since_us))
        self.ledger.contacts.append(contact._replace(is_of_server=person.is_cut_off))
        person.is_cut_off = False

    def step(self, channel: str | None, what: str, since_us: int, took: Span | None = None) -> None:
        self.ledger.steps.append(Step(channel, what, until_now(since_us), took))


def size_of(event: Json) -> int:
    return len(json.dumps(event, separators=(",", ":")))


def patience() -> Iterator[None]:
    """Tries until the time is over."""
    deadline = time.monotonic() + _TIMEOUT_S
    while time.monotonic() < deadline:
        yield
    raise AssertionError("it takes too long")


def wait(is_so: Callable[[], bool]) -> None:
    for _ in patience():
        if is_so():
            return
        time.sleep(0.02)


def has_ack(store: ValkeyServer, id: int) -> bool:
    """Whether one of the newest frames says that the message was acked."""
    newest = store.ask("XREVRANGE", Writer(store, NODE).stream, "+", "-", "COUNT", 3)
    told = (unfold(decode(fields[b"frame"])) for _, fields in newest)
    return any(event.msg == id and event.kind == "acked" for events in told for event in events)


@contextmanager
def town(store: ValkeyServer, seed: int) -> Iterator[Town]:
    town = Town(store, seed)
    try:
        yield town
    finally:
        town.server.stop()
