"""The seeded program: what happens in a town, one thing after the other."""

from collections.abc import Callable

from tests.integration.talker import Json
from tests.pipeline.bookkeeping.ledger import (
    Copy,
    End,
    Message,
    Refusal,
    Span,
    Stay,
    now_us,
    until_now,
)
from tests.pipeline.bookkeeping.people import HOLDBACK, STUMBLE, Person, Verdict
from tests.pipeline.bookkeeping.town import (
    JOBS,
    JOBS_QUEUE,
    SUBJECT,
    SUBJECT_QUEUE,
    Town,
    patience,
    size_of,
    wait,
)

_HELD_MS = 300
# How long a request that nothing answers waits. On a slow machine, too, its responder sees it.
_SHORT_MS = 1_000
_REPLY = {"watt": 230}
_AT_ONCE = {"rate": 10_000, "canary": 0, "stop_at": 1.0}
_BUSY = ("canary", "running")


class Traffic:
    """Makes traffic of every kind."""

    def __init__(self, town: Town) -> None:
        self._town = town
        self._dice = town.dice
        self._ledger = town.ledger
        self._serial = 0
        self._kinds: tuple[Callable[[], None], ...] = (
            self._order,
            self._order,
            self._order,
            self._chat,
            self._poison,
            self._let_someone,
            self._let_someone,
            self._let_someone,
            self._hold_and_resume,
            self._expire,
            self._work,
            self._work,
            self._write,
            self._come_and_go,
            self._misspell,
            self._ask,
            self._ask,
            self._replay,
            self._replay_request,
            self._clear,
            self._leave,
            self._end,
            self._take_over,
        )

    def run(self, rounds: int, after_each: Callable[[], None] = lambda: None) -> None:
        """Let each kind happen in each round, in any order; a kill ends a round."""
        for _ in range(rounds):
            kinds = list(self._kinds)
            self._dice.shuffle(kinds)
            for happen in kinds:
                happen()
            hasty = self._hasty() if self._dice.random() < 0.5 else None
            self._town.write_down()
            if hasty is not None:
                self._hurry(hasty)
            self._town.kill()
            if hasty is not None:
                self._find_out()
            after_each()
        self._settle()

    def _order(self) -> None:
        for _ in range(self._dice.randrange(1, 5)):
            channel = f"/orders/{self._dice.randrange(2)}"
            self._town.publish(channel, self._town.subscribers, by=self._town.amy)

    def _chat(self) -> None:
        self._town.publish("/chat", self._town.subscribers, persistent=False)

    def _poison(self) -> None:
        town = self._town
        copies = town.publish("/poison", [town.ann, town.bob, town.eve])
        town.poison.add(copies[0].message.id)
        for person in (town.ann, town.bob, town.eve):
            self._take_all(person)

    def _let_someone(self) -> None:
        person = self._dice.choice(self._town.subscribers)
        for _ in range(self._dice.randrange(1, 4)):
            self._let(person)

    def _let(self, person: Person, timeout_ms: int = 0) -> list[Json]:
        since_us = now_us()
        codes = [work.verdict.code for work in person.work if work.stops]
        events = person.go_on(timeout_ms)
        # A session that is held back does not wait for the next attempt.
        if codes and codes[0] == STUMBLE:
            self._town.lost_contact(person, "polling", since_us)
        return events

    def _hold_and_resume(self) -> None:
        bob = self._town.bob
        self._town.admin("PUT", "/sessions/bob/1/hold", {"reason": "paper"})
        bob.is_held = True
        self._order()
        self._resume(bob)
        # It cannot take some of them, and takes them later.
        self._town.whims = [Verdict(STUMBLE), Verdict(HOLDBACK, "the printer is off")]
        self._take_all(bob)

    def _resume(self, person: Person) -> None:
        self._town.admin("DELETE", f"/sessions/{person.name}/hold")
        person.is_held = False

    def _expire(self) -> None:
        town = self._town
        if not town.bob.has_room:
            # Whether it expires before it finds no room, only the server knows.
            self._resume(town.bob)
            self._take_all(town.bob)
        before, since_us = town.expired(), now_us()
        life = {"lifeTime": 1, "forceDestroy": True}
        copies = town.publish("/orders/0", town.subscribers, expiration=life)
        waiting = [copy for copy in copies if copy.end is None]
        wait(lambda: town.expired() - before == len(waiting))
        for copy in waiting:
            copy.settle(End.EXPIRED, until_now(since_us))

    def _misspell(self) -> None:
        """Publish to a channel that cannot exist."""
        for _ in range(self._dice.randrange(1, 3)):
            since_us = now_us()
            reply = self._town.tim.say("/a//b", data=0)
            reason = reply["error"].rpartition(":")[2]
            self._ledger.refused.append(Refusal(reason, None, until_now(since_us)))

    # Work queues

    def _work(self) -> None:
        town = self._town
        for _ in range(self._dice.randrange(1, 4)):
            message, _ = town.sent(town.tim, JOBS)
            self._ledger.publish(message, [JOBS_QUEUE])
            self._labour(1)

    def _labour(self, rounds: int) -> None:
        for _ in range(rounds):
            for worker in self._town.workers:
                since_us = now_us()
                worker.go_on()
                self._bury_work(since_us)

    def _bury_work(self, since_us: int) -> None:
        """What all workers have refused is dead."""
        names = {worker.name for worker in self._town.workers}
        for copy in self._ledger.open(JOBS_QUEUE):
            if names <= copy.refused_by:
                last = copy.stays[-2].refusals[-1]
                copy.settle(End.DEAD, until_now(since_us))
                copy.death = last._replace(span=until_now(since_us))

    # Point-to-point

    def _write(self) -> None:
        town = self._town
        to = [{"name": SUBJECT, "forceQueuing": True}]
        message, _ = town.sent(town.amy, "/mail", destinations=to)
        self._ledger.publish(message, [town.pat.name if town.pat else SUBJECT_QUEUE])
        if town.pat is not None:
            town.pat.is_stored = True

    def _come_and_go(self) -> None:
        town = self._town
        if town.pat is None:
            town.pat = pat = Person(self._ledger, town.judge_at_once, (), session=SUBJECT)
            pat.begin(town.server.url)
            for copy in self._ledger.open(SUBJECT_QUEUE):
                pat.is_stored = True
                copy.move(pat.name)
            self._let(pat)
            return
        name = town.pat.name
        self._let(town.pat)
        town.pat.leave()
        for copy in self._ledger.open(name):
            copy.move(SUBJECT_QUEUE)
        town.pat = None

    # Requests

    def _ask(self) -> None:
        kinds = (self._answered, self._refused, self._timeout, self._alone, self._late)
        self._dice.choice(kinds)()

    def _asked(self, channel: str, timeout_ms: int) -> tuple[int, list[Copy]]:
        """Ask; the time, and the copies for the responder."""
        town = self._town
        self._serial += 1
        address, since_us = f"{town.amy.ret}/{4_000_000 + self._serial}", now_us()
        asked = {"replyTo": address, "timeout": timeout_ms}
        message, _ = town.sent(town.amy, channel, asked)
        receivers = [town.ida.name] if channel != "/ask/none" else []
        town.step(channel, "asked", since_us)
        return since_us, self._ledger.publish(message, receivers)

    def _requested(self, copies: list[Copy]) -> str:
        """Wait until the responder has the request; where it wants the reply."""
        for _ in patience():
            for event in self._town.ida.go_on(_HELD_MS):
                if event["ext"]["delivery"]["id"].endswith(str(copies[0].message.id)):
                    address: str = event["ext"]["replyTo"]
                    return address
        raise AssertionError("the request never came")

    def _replied(self, person: Person, address: str, error: str, what: str, channel: str) -> None:
        since_us = now_us()
        reply = person.say(address, data=_REPLY)
        assert reply.get("error", "").partition(":")[0] == error, reply
        self._town.step(channel if what != "denied" else None, what, since_us)

    def _told(self, error: str) -> None:
        """The requester gets a reply or an error."""
        events = next(filter(None, (self._town.amy.go_on(_HELD_MS) for _ in patience())))
        assert events[-1].get("error", "").partition(":")[0] == error, events

    def _answered(self) -> None:
        town, channel = self._town, self._dice.choice(("/ask/a", "/ask/b"))
        since_us, copies = self._asked(channel, 60_000)
        address = self._requested(copies)
        self._replied(town.bob, address, "403", "denied", channel)
        self._replied(town.ida, address, "", "accepted", channel)
        self._told("")
        self._ended(channel, "answered", since_us)
        if self._dice.random() < 0.5:
            self._replied(town.ida, address, "409", "duplicate", channel)

    def _ended(self, channel: str, how: str, since_us: int) -> None:
        took = Span(0, until_now(since_us).until_us - since_us)
        self._town.step(channel, how, since_us, took)

    def _refused(self) -> Copy:
        channel = "/ask/a"
        since_us, copies = self._asked(channel, 60_000)
        self._requested(copies)
        ida = self._town.ida
        assert ida.work[-1].copy is copies[0]
        ida.work[-1] = ida.work[-1]._replace(verdict=Verdict("user.update.error", "disk full"))
        ida.go_on()
        self._told("500")
        self._ended(channel, "refused", since_us)
        return copies[0]

    def _timeout(self) -> str:
        channel = "/ask/b"
        since_us, copies = self._asked(channel, _SHORT_MS)
        address = self._requested(copies)
        self._told("408")
        self._ended(channel, "timeout", since_us)
        return address

    def _late(self) -> None:
        town, address = self._town, self._timeout()
        since_us = now_us()
        self._replied(town.ida, address, "410", "late", "/ask/b")
        span = until_now(since_us)
        letter = town.admin("GET", "/dead-letters?limit=1&receiver=amy/1")["items"][0]
        id = int(letter["message"].rpartition("-")[2])
        size = size_of({"channel": letter["channel"], "data": _REPLY})
        message = Message(id, letter["channel"], town.ida.name, True, size, span)
        [copy] = self._ledger.publish(message, [town.amy.name])
        copy.die("communication.lateReply", "", span)

    def _alone(self) -> None:
        since_us, _ = self._asked("/ask/none", 60_000)
        self._told("404")
        self._ended("/ask/none", "no_responders", since_us)

    # Operators

    def _replay(self) -> None:
        """Replay the letters of a receiver, which takes them all."""
        town = self._town
        person = self._dice.choice((town.ann, town.bob, town.ida))
        self._take_all(person)
        letters = [
            copy
            for copy in self._ledger.dead()
            if copy.receiver == person.name and not copy.is_replayed
        ][: person.capacity]
        if letters:
            self._replay_to(person, letters)

    def _replay_request(self) -> None:
        """Replay a request that its responder refused: this one sees it again, but was heard."""
        ida = self._town.ida
        refused = self._refused()
        self._take_all(ida)
        [address] = {event["ext"]["replyTo"] for event in self._replay_to(ida, [refused])}
        self._replied(ida, address, "409", "duplicate", "/ask/a")
        self._take_all(ida)

    def _replay_to(self, person: Person, letters: list[Copy]) -> list[Json]:
        """Replay letters to a receiver that is there; what it gets until they were sent."""
        town, events = self._town, list[Json]()
        ids = [town.letter_of(copy) for copy in letters]
        wanted = {"filter": {"ids": ids}, "options": _AT_ONCE}
        since_us = now_us()
        job = town.admin("POST", "/replays", {**wanted, "dry_run": False})
        for letter in letters:
            letter.is_replayed = True
            again = Copy(letter.message, [Stay(person.name)], letter.generation + 1)
            again.replayed = until_now(since_us)
            self._ledger.copies.append(again)
        for _ in patience():
            job = town.admin("GET", f"/replays/{job['id']}")
            if job["state"] not in _BUSY:
                break
            if person.is_held:
                self._resume(person)
            events += self._let(person)
        assert job["sent"] == len(letters), (job, letters)
        return events

    def _take_all(self, person: Person) -> None:
        for _ in patience():
            if not self._ledger.open(person.name):
                return
            if person.is_held:
                self._let(person)
                self._resume(person)
            self._let(person, _HELD_MS)

    def _clear(self) -> None:
        bob, since_us = self._town.bob, now_us()
        self._town.admin("DELETE", "/sessions/bob/1/queue")
        bob.work = []
        for copy in self._ledger.open(bob.name):
            copy.settle(End.DISCARDED, until_now(since_us))

    def _leave(self) -> None:
        """A session without a name leaves, with what it has: it ends, which loses no contact."""
        eve, since_us = self._town.eve, now_us()
        eve.leave()
        for copy in self._ledger.open(eve.name):
            copy.settle(End.DISCARDED, until_now(since_us))
        eve.begin(self._town.server.url)

    def _end(self) -> None:
        """A named session ends, and begins again."""
        ann, since_us = self._town.ann, now_us()
        ann.leave(end=True)
        span = until_now(since_us)
        for copy in self._ledger.open(ann.name):
            copy.die("communication.noConnection.dead", "its session was ended by its client", span)
        ann.is_held = False
        ann.begin(self._town.server.url)

    def _take_over(self) -> None:
        bob = self._town.bob
        for _ in range(3):
            since_us = now_us()
            bob.begin(self._town.server.url)
            self._town.lost_contact(bob, "taken_over", since_us)

    # The end

    def _hasty(self) -> list[Person]:
        """Those who go on up to the moment of a kill, from now on with final verdicts alone.

        A message that is not stored does not come again. Whether the server learned that one is to
        come again, nobody else knows: it comes in either case.
        """
        town = self._town
        hasty = [each for each in (town.ann, town.bob) if not self._has_passing(each)]
        town.is_final = True
        for person in hasty:
            self._let(person)
        return hasty

    def _hurry(self, hasty: list[Person]) -> None:
        """Durable traffic of named sessions up to the moment of a kill, which may lose verdicts."""
        town = self._town
        for _ in range(self._dice.randrange(2, 8)):
            town.publish("/safe", [town.ann, town.bob])
            for person in hasty:
                self._let(person)

    def _find_out(self) -> None:
        """Find out which of the last acks were lost: what they were for comes again."""
        for person in (self._town.ann, self._town.bob):
            for _ in patience():
                self._take_all(person)
                if not person.go_on(_HELD_MS):
                    break

    def _has_passing(self, person: Person) -> bool:
        return not all(copy.message.is_durable for copy in self._ledger.open(person.name))

    def _settle(self) -> None:
        """Let all copies end, and begin a few."""
        town = self._town
        for person in (town.ann, town.bob, town.eve, town.ola, town.ida, town.amy):
            self._take_all(person)
        for _ in patience():
            if not self._ledger.open(JOBS_QUEUE) and not any(each.work for each in town.workers):
                break
            self._labour(1)
        self._order()
        self._order()
        self._let(town.bob)
        self._misspell()
        town.write_down()
