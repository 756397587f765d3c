"""Subjects, sessions and restarts in any order, beside a model of who has to get what.

The model says only what was promised: a message that its publisher was told is accepted for a
subject is with the subject until one of its sessions has acknowledged it, and no session has a
message twice at the same time.
"""

from collections import Counter
from functools import partial
from typing import Any

import pytest
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
from holdfast.bayeux.restoring import restore, restore_without_session
from holdfast.delivery.shared_queues import SharedQueueLimits
from holdfast.delivery.store_port import StorePort
from holdfast.delivery.topics import TopicConfig
from tests.unit.bayeux.harness import Client, House
from tests.unit.extensions.delivering import house_of

SUBJECTS = ["ann", "joe"]
LIMITS: dict[str, Any] = {
    "subject_limits": SharedQueueLimits(entries=4),
    # Topics, which count their messages.
    "channels": {"/**": ChannelRule(topic=TopicConfig(destroy_delay_ms=1000))},
}
# Of named and of unnamed sessions.
NAMES = ["ann/1", "joe/1", "joe/2", "joe"]
people = st.sampled_from(range(len(NAMES)))


class Receiver:
    """A client with what it has not acknowledged."""

    def __init__(self, client: Client, name: str, *, ptp: bool, room: int) -> None:
        self.client = client
        self.subject = name.partition("/")[0]
        self.is_named = "/" in name
        self.ptp, self.room = ptp, room
        self.batch = 0
        self.has: list[int] = []


class Subjects(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.house: House = house_of(keeper=self.open_store(), **LIMITS)
        self.publisher = self.house.client()
        self.receivers: dict[int, Receiver] = {}
        self.sent = 0
        # By message, its subject, and whether somebody has acknowledged it.
        self.subject_of: dict[int, str] = {}
        self.acked: set[int] = set()

    def open_store(self) -> StorePort | None:
        """The store of the house, unless the house has one of its own."""
        return None

    # What happens

    @rule(who=people, ptp=st.sampled_from([True, True, True, False]), room=st.sampled_from([1, 9]))
    def arrive(self, who: int, ptp: bool, room: int) -> None:
        name = NAMES[who]
        if who in self.receivers:
            return
        client = self.house.guest()
        terms = {"session": name, "ptp": ptp, "queue": {"maxEntries": room}}
        client.handshake(ext={"ack": True, "delivery": terms})
        assert client.client_id is not None
        self.receivers[who] = Receiver(client, name, ptp=ptp, room=room)
        self.house.turn()

    @rule(subject=st.sampled_from(SUBJECTS), forced=st.booleans(), priority=st.sampled_from([4, 5]))
    def write(self, subject: str, forced: bool, priority: int) -> None:
        self.sent += 1
        to = {"name": subject, "forceQueuing": forced}
        ext = {"delivery": {"destinations": [to], "priority": priority}}
        asked = self.publisher.publish("/a", self.sent, ext=ext)
        self.house.turn()
        takers = self.takers(subject)
        if asked.reply["successful"]:
            assert takers or forced or self.has_away(subject)
            self.subject_of[self.sent] = subject
        else:
            code = asked.reply["error"].partition(":")[0]
            assert code in (("507",) if takers or forced else ("403", "404", "507"))
            if code == "507":
                assert len(self.waiting(subject)) >= 4

    @rule(who=people)
    def fetch(self, who: int) -> None:
        """It acknowledges what it has, and gets what there is."""
        receiver = self.receivers.get(who)
        if receiver is None:
            return
        ext = {"ack": receiver.batch}
        asked = receiver.client.connect(ext=ext, advice={"timeout": 0})
        self.house.turn()
        reply = asked.elements[-1]
        assert reply["successful"], reply
        self.acked.update(receiver.has)
        receiver.has = asked.data
        receiver.batch = reply["ext"]["ack"]
        assert max(Counter(receiver.has).values(), default=1) == 1
        assert all(self.subject_of[number] == receiver.subject for number in receiver.has)

    @rule(who=people)
    def end(self, who: int) -> None:
        receiver = self.receivers.pop(who, None)
        if receiver is not None:
            ext = {"delivery": {"end": True}} if receiver.is_named else {}
            receiver.client.send({"channel": "/meta/disconnect", "ext": ext})
            self.house.turn()

    @precondition(lambda self: self.receivers)
    @rule()
    def lose_contact(self) -> None:
        """Nobody comes back in time: unnamed sessions end, the others wait for their clients."""
        self.house.advance(15.0)
        gone = [who for who, each in self.receivers.items() if not each.is_named]
        for who in gone:
            del self.receivers[who]
        self.publisher = self.house.client()

    @precondition(lambda self: self.receivers)
    @rule()
    def restart(self) -> None:
        """The server is killed, and another takes its place; all clients begin anew."""
        keeper = self.house.keeper
        house = house_of(keeper=keeper, after=self.house, **LIMITS)
        for record, entries in keeper.load(partial(restore_without_session, house.bayeux.life)):
            restore(house.bayeux.life, record, entries, house.now)
        house.bayeux.life.topics.restore()
        house.turn()
        self.house, self.receivers = house, {}
        self.publisher = house.client()
        for session in list(house.bayeux.state.sessions):
            if session.key.rpartition("/")[0] in SUBJECTS:
                house.server.end_by_server(session)
        house.turn()

    # What must hold

    def takers(self, subject: str) -> list[Receiver]:
        return [each for each in self.receivers.values() if each.subject == subject and each.ptp]

    def has_away(self, subject: str) -> bool:
        return any(
            session.subject == subject and session.takes_addressed
            for session in self.house.bayeux.state.sessions
        )

    def waiting(self, subject: str) -> list[int]:
        receiver = self.house.bayeux.state.ptp.subjects.queue(subject)
        if receiver is None:
            return []
        return [int(message.wire.rpartition(b":")[2][:-1]) for message in receiver.queue.waiting]

    @invariant()
    def nothing_is_lost(self) -> None:
        for number, subject in self.subject_of.items():
            if number not in self.acked:
                has = [self.numbers(session) for session in self.sessions(subject)]
                assert any(number in each for each in has) or number in self.waiting(subject)

    def sessions(self, subject: str) -> list[Any]:
        sessions = self.house.bayeux.state.sessions
        return [session for session in sessions if session.subject == subject]

    def numbers(self, session: Any) -> list[int]:
        messages = session.queue.messages()
        return [int(message.wire.rpartition(b":")[2][:-1]) for message in messages]

    @invariant()
    def nobody_has_it_twice(self) -> None:
        for session in self.house.bayeux.state.sessions:
            numbers = self.numbers(session) if session.subject in SUBJECTS else []
            assert len(numbers) == len(set(numbers))
        for subject in SUBJECTS:
            waiting = self.waiting(subject)
            assert len(waiting) == len(set(waiting))

    @invariant()
    def nobody_waits_while_a_session_would_take_it(self) -> None:
        for subject in SUBJECTS:
            free = [
                each for each in self.takers(subject) if each.client.session.queue.count < each.room
            ]
            assert not (self.waiting(subject) and free)

    @invariant()
    def everything_is_somewhere(self) -> None:
        assert self.house.balances()

    @invariant()
    def the_store_knows_it(self) -> None:
        self.check_store()

    def check_store(self) -> None:
        for number, subject in self.subject_of.items():
            if number not in self.acked:
                keys = [key for key in self.house.keeper.queues if key.startswith(f"{subject}/")]
                kept = [
                    message
                    for key in keys
                    for _, message in self.house.keeper.waiting(key)
                    if message.wire.endswith(b":%d}" % number)
                ]
                assert kept, number


@pytest.mark.slow
def test_what_is_written_to_a_subject_is_with_it_until_it_is_taken() -> None:
    run_state_machine_as_test(Subjects, settings=settings(stateful_step_count=30))
