"""Receivers, refusals and restarts in any order, beside a model of who may have which work.

The model says only what was promised: a message that its publisher was told is accepted is with one
receiver or in the queue, and nowhere else, until one receiver has acknowledged it or all that are
there have refused it.
"""

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from holdfast.bayeux.options import ChannelRule
from holdfast.bayeux.sessions import Session
from holdfast.delivery.shared_queues import SharedQueueLimits
from holdfast.delivery.store_port import StorePort
from holdfast.delivery.topics import TopicConfig
from tests.unit.bayeux.harness import Client, House, Json
from tests.unit.bayeux.test_point_to_point import restarted
from tests.unit.extensions.delivering import connect, house_of, no

JOBS = "/jobs/a"
MOST = 4
LIMITS: dict[str, Any] = {
    # Topics, which count their messages.
    "channels": {"/jobs/*": ChannelRule(is_work_queue=True, topic=TopicConfig())},
    "work_limits": SharedQueueLimits(entries=MOST),
}
# Of named and of unnamed sessions.
NAMES = ["ann/1", "joe/1", None, None]
people = st.sampled_from(range(len(NAMES)))


class Worker:
    """A receiver with the work that it has not answered for."""

    def __init__(self, client: Client, name: str | None, room: int) -> None:
        self.client = client
        self.is_named = name is not None
        self.room = room
        self.key = client.session.key
        self.has: list[Json] = []


class WorkQueue(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.house: House = house_of(keeper=self.open_store(), **LIMITS)
        self.publisher = self.house.client()
        self.workers: dict[int, Worker] = {}
        self.sent = 0
        self.open: set[int] = set()
        # Who has refused a message, as far as the running process knows.
        self.refusers: dict[int, set[str]] = {}

    def open_store(self) -> StorePort | None:
        """The store of the house, unless the house has one of its own."""
        return None

    # What happens

    @rule(who=people, room=st.sampled_from([1, 9]), pattern=st.sampled_from([JOBS, "/jobs/*"]))
    def arrive(self, who: int, room: int, pattern: str) -> None:
        if who in self.workers:
            return
        client, name = self.house.guest(), NAMES[who]
        terms: Json = {"queue": {"maxEntries": room}}
        if name is not None:
            terms["session"] = name
        client.handshake(ext={"ack": True, "delivery": terms})
        client.subscribe(pattern)
        self.house.turn()
        self.workers[who] = Worker(client, name, room)
        self.fetch(who)

    @rule(priority=st.sampled_from([4, 5]))
    def put(self, priority: int) -> None:
        self.sent += 1
        ext = {"delivery": {"priority": priority}}
        asked = self.publisher.publish(JOBS, self.sent, ext=ext)
        waiting = len(self.waiting())
        self.house.turn()
        if asked.reply["successful"]:
            self.open.add(self.sent)
        else:
            assert asked.reply["error"].startswith("507:resource.overflow.queue.entries")
            assert waiting >= MOST

    @precondition(lambda self: self.workers)
    @rule(who=people)
    def take(self, who: int) -> None:
        """It acknowledges what it has, and gets what there is."""
        self.fetch(self.present(who))

    def present(self, who: int) -> int:
        """One of the receivers that are there."""
        return list(self.workers)[who % len(self.workers)]

    def fetch(self, who: int, *verdicts: Json) -> None:
        worker = self.workers[who]
        asked = connect(worker.client, *verdicts)
        self.house.turn()
        assert asked.elements[-1]["successful"], asked.elements
        refused = {verdict["seq"] for verdict in verdicts}
        for event in worker.has:
            if event["ext"]["delivery"]["seq"] not in refused:
                self.open.discard(event["data"])
        worker.has = asked.events
        numbers = asked.data
        assert len(set(numbers)) == len(numbers)
        assert not any(worker.key in self.refusers.get(number, ()) for number in numbers)

    @precondition(lambda self: any(each.has for each in self.workers.values()))
    @rule(who=people)
    def refuse(self, who: int) -> None:
        busy = [each for each, worker in self.workers.items() if worker.has]
        who = busy[who % len(busy)]
        worker = self.workers[who]
        event = worker.has[0]
        self.refusers.setdefault(event["data"], set()).add(worker.key)
        self.fetch(who, no(event, "user.update.error"))

    @precondition(lambda self: self.workers)
    @rule(who=people, how=st.sampled_from(["end", "unsubscribe", "lose contact", "restart"]))
    def disturb(self, who: int, how: str) -> None:
        match how:
            case "end":
                self.end(self.workers.pop(self.present(who)))
            case "unsubscribe":
                self.unsubscribe(self.workers.pop(self.present(who)))
            case "restart":
                self.restart()
            case _:
                self.lose_contact()

    def end(self, worker: Worker) -> None:
        ext = {"delivery": {"end": True}} if worker.is_named else {}
        worker.client.send({"channel": "/meta/disconnect", "ext": ext})
        self.house.turn()

    def unsubscribe(self, worker: Worker) -> None:
        worker.client.unsubscribe(*worker.client.session.subscriptions)
        self.house.turn()
        # What it had been handed is still its own.
        for event in worker.has:
            self.open.discard(event["data"])
        connect(worker.client)
        self.end(worker)

    def lose_contact(self) -> None:
        """Nobody comes back in time."""
        self.house.advance(15.0)
        self.house.turn()
        self.workers.clear()
        self.publisher = self.house.client()

    def restart(self) -> None:
        """The server is killed, and another takes its place; all clients begin anew."""
        self.house = restarted(self.house, **LIMITS)
        self.workers.clear()
        self.refusers.clear()
        self.publisher = self.house.client()
        for session in list(self.house.bayeux.state.sessions):
            if session.subscriptions:
                self.house.server.end_by_server(session)
        self.house.turn()

    # What must hold

    def sessions(self) -> list[Session]:
        return list(self.house.bayeux.state.sessions)

    def waiting(self) -> list[int]:
        receiver = self.house.bayeux.state.work.of(JOBS)
        return [] if receiver is None else self.numbers(receiver)

    def numbers(self, session: Session) -> list[int]:
        messages = session.queue.messages()
        return [int(message.wire.rpartition(b":")[2][:-1]) for message in messages]

    def letters(self) -> list[int]:
        return [letter.envelope()["content"] for letter in self.house.keeper.letters]

    @invariant()
    def everything_is_in_one_place(self) -> None:
        places = [*self.waiting(), *self.letters()]
        for session in self.sessions():
            places += self.numbers(session)
        open = [number for number in places if number in self.open]
        assert sorted(open) == sorted(self.open)

    @invariant()
    def letters_are_of_what_was_refused(self) -> None:
        for letter in self.house.keeper.letters:
            assert letter.code == "user.update.error"
            assert letter.attempts[-1].receiver

    @invariant()
    def nothing_waits_while_a_receiver_would_take_it(self) -> None:
        for worker in self.workers.values():
            has_room = worker.client.session.queue.count < worker.room
            for number in self.waiting() if has_room else ():
                assert worker.key in self.refusers.get(number, ())

    @invariant()
    def nothing_waits_that_all_have_refused(self) -> None:
        keys = {worker.key for worker in self.workers.values()}
        has_room = any(
            worker.client.session.queue.count < worker.room for worker in self.workers.values()
        )
        for number in self.waiting() if has_room else ():
            assert keys - self.refusers.get(number, set())

    @invariant()
    def everything_is_accounted_for(self) -> None:
        assert self.house.balances()

    @invariant()
    def the_store_has_it_in_one_place(self) -> None:
        self.check_store()

    def check_store(self) -> None:
        kept = [
            int(message.wire.rpartition(b":")[2][:-1])
            for key in self.house.keeper.queues
            for _, message in self.house.keeper.waiting(key)
        ]
        dead = set(self.letters())
        assert sorted(number for number in kept if number in self.open) == sorted(self.open - dead)


def test_work_is_with_one_receiver_until_it_is_done() -> None:
    run_state_machine_as_test(WorkQueue, settings=settings(stateful_step_count=40))
