"""A server and its model on one stage: whatever is done to one of them is done to the other."""

import copy
from collections.abc import Sequence
from math import inf

from holdfast.bayeux.session import Session
from holdfast.delivery.guard.holds import ChannelHold
from tests.unit.bayeux.delivery_books import PATIENT
from tests.unit.bayeux.delivery_invariants import Invariants
from tests.unit.bayeux.delivery_model import Model
from tests.unit.bayeux.delivery_people import Person, Said, meant, verdict
from tests.unit.bayeux.delivery_receiver import MAX_INTERVAL_S, Kind, Question, Receiver, Sent
from tests.unit.bayeux.delivery_store import Backing
from tests.unit.bayeux.delivery_world import new_server
from tests.unit.bayeux.harness import ABSENT, Client, Json, Wire

# How much later than it is due something may happen (seconds).
LATE_S = 0.25
# Lifetimes of messages that then expire, in milliseconds; with zero they expire at once.
LIVES_MS = (1123, 1123, 2411, 0)


class Stage:
    """Each method does the same to the server and to the model."""

    def __init__(self, backing: Backing, kinds: Sequence[Kind]) -> None:
        self.backing = backing
        self.server = new_server(backing)
        self.model = Model(self.server.now)
        # What a server finds that starts while the store is away.
        self.kept: Model | None = None
        # Whether the store answers only when the test lets it.
        self.is_slow = False
        self.number = 0
        self.publishers: list[Client] = [self.server.client() for _ in range(2)]
        self.people = [Person(kind) for kind in kinds]
        self.invariants = Invariants(self.people)
        for person in self.people:
            self.shake_hands(person, None)
            self.connect(person, ack=0)

    def session(self, receiver: Receiver) -> Session:
        return next(each for each in self.server.bayeux.state.sessions if each.name == receiver.key)

    def receiver(self, person: Person) -> Receiver | None:
        """Where its client is, if it still has a session."""
        client_id = None if person.client is None else person.client.client_id
        for receiver in self.model.receivers:
            if receiver.client == client_id and not (receiver.is_over or receiver.is_away):
                return receiver
        return None

    # Publishers

    def send(self, by: int, channel: str, count: int, qos: Json) -> None:
        for _ in range(count):
            self.number += 1
            receivers = [
                receiver for receiver in self.model.receivers if channel in receiver.channels()
            ]
            life_ms = qos.get("expiration", {}).get("lifeTime", inf)
            ends = self.server.now + life_ms / 1000
            sent = Sent(self.number, channel, by, qos.get("priority", 5), receivers, ends)
            asked = self._publisher(by).publish(channel, self.number, ext={"delivery": qos})
            said = self.model.publish(
                sent, persistent=qos.get("persistent"), is_refused=self.backing.is_refusing
            )
            if said != "waits":
                self.model.replies[self.number] = said
            self.invariants.accepted.append((sent, asked))

    def _publisher(self, number: int) -> Client:
        """A publisher whose session has expired comes back with another."""
        publisher = self.publishers[number]
        if publisher.client_id not in {
            each.client_id for each in self.server.bayeux.state.sessions
        }:
            publisher = self.publishers[number] = self.server.client()
        return publisher

    # Receivers

    def shake_hands(self, person: Person, active: bool | None) -> None:
        """As a new client, if handshakes are accepted now."""
        if self.model.is_full and person.kind.options is not None:
            return
        if person.kind.name is not None and not self.model.is_store_there:
            return
        asked = person.shake_hands(self.server, active)
        receiver = self.model.claim(person.kind, self.server.now, active=active)
        if person.kind.name is not None:
            self.end_turn(is_quick=True)
        client = person.client
        assert client is not None
        client.learn(asked)
        receiver.client, receiver.key = client.client_id or "", client.session.name
        receiver.deadline = self.server.now + MAX_INTERVAL_S
        client.subscribe(*receiver.channels())
        self.end_turn(is_quick=person.kind.name is not None)

    def connect(
        self,
        person: Person,
        *,
        said: Sequence[Said] = (),
        pending: Sequence[int] = (),
        ack: int | None,
        is_patient: bool = False,
        fate: str = "heard",
    ) -> None:
        receiver, client, now = self.receiver(person), person.client, self.server.now
        if receiver is None or client is None:
            return
        message: Json = {"channel": "/meta/connect", "connectionType": "long-polling"}
        message["advice"] = ABSENT if is_patient else {"timeout": 0}
        ack = ack if person.kind.settles == "batch" else None
        message["ext"] = person.ask([verdict(*each) for each in said], pending, ack)
        wire = Wire()
        wire.is_cut = fate == "cut"
        wire.is_dropped = fate == "dropped"
        asked = client.send(message, wire=wire)
        question = Question(receiver, receiver.client, wire.is_cut, wire.is_dropped)
        person.questions.append((question, asked, fate == "heard"))
        person.newest = question
        if person.kind.options is not None and self.model.is_full:
            question.state = "refused"
        else:
            self._hear(person, receiver, question, said, pending, ack)
            if not receiver.is_over:
                self.model.connect(question, now, is_patient=is_patient)
        self.model.hear(receiver, now)
        self.end_turn()

    def _hear(
        self,
        person: Person,
        receiver: Receiver,
        question: Question,
        said: Sequence[Said],
        pending: Sequence[int],
        ack: int | None,
    ) -> None:
        """Verdicts first, then the ack."""
        if person.kind.options is not None:
            has_refused = self.model.judge(receiver, meant(said), self.server.now)
            if receiver.is_durable and has_refused:
                self.model.wait_for_store(question)
            self.model.keep_pending(receiver, pending)
        if ack is not None:
            self.model.acknowledge(receiver, ack)
        if receiver.is_over:
            question.state = "unknown"

    def say(self, person: Person, said: Sequence[Said]) -> None:
        """Verdicts without a connect."""
        receiver, client = self.receiver(person), person.client
        if receiver is not None and client is not None and person.kind.options is not None:
            asked = client.publish("/service/delivery", [verdict(*each) for each in said])
            if not self.model.is_full:
                self.model.say(receiver)
                self.invariants.kept.append((receiver, asked))
                self.model.judge(receiver, meant(said), self.server.now)
            self.model.hear(receiver, self.server.now)
            self.end_turn()

    def subscribe(self, person: Person) -> None:
        """Once more, to the same channels; the store must have it before the reply."""
        receiver, client = self.receiver(person), person.client
        if receiver is None or client is None or not receiver.is_durable:
            return
        asked = client.subscribe(*receiver.channels())
        if not self.model.is_full:
            self.model.subscribe(receiver)
            self.invariants.kept.append((receiver, asked))
        self.model.hear(receiver, self.server.now)
        self.end_turn()

    def give_up_waiting(self, person: Person) -> None:
        """The connection of the last request is closed."""
        if person.questions:
            question, asked, _ = person.questions[-1]
            self.server.abort(asked)
            self.model.abort(question, self.server.now)
            self.end_turn()

    def go(self, person: Person, how: str) -> None:
        """Its client leaves the session, ends it, or has it discarded."""
        receiver, client = self.receiver(person), person.client
        if receiver is None or client is None:
            return
        asked = {"leave": {}, "end": {"end": True}, "discard": {"end": True, "discard": True}}
        goodbye = client.send({"channel": "/meta/disconnect", "ext": {"delivery": asked[how]}})
        before = [each for _, each, _ in person.questions]
        before += [each for of, each in self.invariants.kept if of is receiver]
        self.invariants.goodbyes.append((goodbye, before))
        if person.kind.options is not None and self.model.is_full:
            self.model.hear(receiver, self.server.now)
        elif person.kind.name is not None and how == "leave":
            self.model.go_away(receiver, self.server.now)
        elif person.kind.name is not None and how == "end":
            self.model.stop(receiver, self.server.now)
        else:
            self.model.say_goodbye(receiver, self.server.now)
        self.end_turn()

    # Operators

    def hold(self, receiver: Receiver, seconds: float | None) -> None:
        bayeux, until_ms = self.server.bayeux, None
        if seconds is not None:
            until_ms = bayeux.state.node.now_ms() + round(seconds * 1000)
        bayeux.life.hold_back(
            self.session(receiver),
            "maintenance",
            who="operator",
            now=self.server.now,
            until_ms=until_ms,
        )
        self.model.hold(receiver, None if seconds is None else self.server.now + seconds)
        self.end_turn()

    def resume(self, receiver: Receiver) -> None:
        self.server.bayeux.life.resume(self.session(receiver), self.server.now)
        self.model.resume(receiver, self.server.now)
        self.end_turn()

    def clear(self, receiver: Receiver) -> None:
        self.server.bayeux.life.clear(self.session(receiver))
        self.model.clear(receiver)
        self.end_turn()

    def hold_channel(self, *, is_held: bool) -> None:
        """As the guard does when most receivers of the channel refuse its messages."""
        bayeux = self.server.bayeux
        if is_held:
            held = ChannelHold(bayeux.state.node.now_ms(), "nobody wants it")
            bayeux.state.guard._held[PATIENT] = held
            bayeux.state.hub.store.save_channel_hold(PATIENT, held)
            self.model.held = {PATIENT}
        else:
            bayeux.life.channel_holds.release(PATIENT, "operator", "operator/ann")
            self.model.held = set()
        self.end_turn()

    # The store

    def end_wait_limit(self) -> None:
        """Publishers have waited too long; the store still answers later."""
        self.backing.end_wait_limit()
        self.model.end_wait_limit()

    def refuse(self, *, is_full: bool) -> None:
        """There is no room for more messages."""
        if self.model.is_store_there:
            self.backing.refuse(is_full=is_full)

    def overflow(self, *, is_full: bool) -> None:
        """There is no room for what waits for the store."""
        if self.backing.overflow(is_full=is_full):
            self.model.is_full = is_full

    def lose_store(self) -> None:
        if self.model.is_store_there:
            self.kept = copy.deepcopy(self.model)
            self.model.is_store_there = False
            self.backing.go_away()
            self.end_turn()

    def regain_store(self) -> None:
        if not self.model.is_store_there:
            self.kept = None
            self.model.is_store_there = True
            self.backing.come_back()
            self.server.bayeux.life.store_is_back()
            self.end_turn()

    # Time, and the end of the server

    def wait(self, seconds: float) -> None:
        self.end_turn()
        target = self.server.now + seconds
        while self.server.now < target:
            self.server.now = self._next_time(target)
            self.server.bayeux.tick(self.server.now)
            self.model.tick(self.server.now)
            self.end_turn()
            self.look()

    def _next_time(self, target: float) -> float:
        """Shortly after something is due, when it is certain that nothing else is due just now."""
        now = self.server.now
        dues = sorted(due for receiver in self.model.receivers for due in receiver.dues(now))
        time = min(dues[0] + LATE_S, target) if dues else target
        for due in dues:
            if time - LATE_S < due <= time:
                time = due + LATE_S
        return time

    def restart(self) -> None:
        """The server is killed, and another one finds what was kept."""
        self.model = self.kept or self.model
        self.kept = None
        # A start takes time, however little.
        self.server.now += 0.001
        self.server = new_server(self.backing, after=self.server)
        self.model.restart(self.server.now)
        for receiver in self.model.receivers:
            session = self.session(receiver)
            queue = session.queue
            if receiver.is_away:
                # An id that no client was ever given.
                receiver.client = session.client_id
            assert queue.seq >= receiver.seq
            assert queue.batch >= max((each.batch for each in receiver.in_flight), default=0)
            receiver.seq, receiver.batch = queue.seq, queue.batch
        self.invariants.accepted.clear()
        self.invariants.goodbyes.clear()
        self.invariants.kept.clear()
        for person in self.people:
            person.move(self.server)
        for publisher in self.publishers:
            publisher.server = self.server
        self.end_turn()

    def end_turn(self, *, is_quick: bool = False) -> None:
        """All receivers with news are told, and the store answers if it may."""
        while True:
            is_busy = self.server.flush()
            self.model.tell(self.server.now)
            if self.model.is_store_there and (is_quick or not self.is_slow):
                is_busy |= self.backing.answer()
                self.model.store_answers(self.server.now)
            if not is_busy:
                return

    def look(self) -> None:
        """Both must agree."""
        self.invariants.look(self.server, self.backing, self.model)
