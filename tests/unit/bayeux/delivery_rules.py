"""What publishers, receivers, operators, the network, the store and time do, in any order.

Whatever happens is told to a real server and to the model; after each step both must agree.
"""

import copy
from collections.abc import Sequence
from math import inf

from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from app.bayeux.sessions import Session
from app.delivery.guard import Held
from tests.unit.bayeux.delivery_books import PATIENT
from tests.unit.bayeux.delivery_model import Model
from tests.unit.bayeux.delivery_people import KINDS, WORDS, Person, verdict
from tests.unit.bayeux.delivery_place import MAX_INTERVAL_S, Kind, Place, Question, Sent
from tests.unit.bayeux.delivery_world import Backing, Comparison, new_house
from tests.unit.bayeux.harness import ABSENT, Asked, Client, Json, Wire

CHANNELS = ("/a", "/b")
# How much later than it is due something may happen (seconds).
LATE_S = 0.25
LIFE_MS = 1123

people = st.integers(0, 1)
words = st.lists(st.tuples(st.integers(0, 5), st.sampled_from([*WORDS, "OK", "OK"])), max_size=3)
fates = st.sampled_from(["heard", "heard", "heard", "lost", "cut"])


class DeliveryRules(RuleBasedStateMachine):
    """Everybody at once."""

    def open_store(self) -> Backing:
        raise NotImplementedError

    @initialize(
        kinds=st.lists(st.sampled_from(KINDS), min_size=1, max_size=2, unique=True),
        is_slow=st.booleans(),
    )
    def open(self, kinds: Sequence[Kind], is_slow: bool) -> None:
        self.backing = self.open_store()
        self.house = new_house(self.backing)
        self.model = Model()
        # What a server will find that comes while the store is away.
        self.kept: Model | None = None
        self.is_slow = False
        self.number = 0
        self.publishers: list[Client] = [self.house.client() for _ in range(2)]
        self.publications: list[tuple[Sent, Asked]] = []
        # What each client has got; seqs that were used for each receiver.
        self.told: dict[str, set[int]] = {}
        self.used: dict[int, set[int]] = {}
        # What publishers heard was kept, for each durable receiver.
        self.promised: list[tuple[str, int]] = []
        self.people = [Person(kind) for kind in kinds]
        for person in self.people:
            self.shake_hands(person, None)
            self.connect(person, [], [], person.acks[-1], is_patient=False, fate="heard")
        self.end_turn()
        self.is_slow = is_slow

    # Publishers

    @rule(
        by=st.integers(0, 1),
        channel=st.sampled_from([*CHANNELS, "/a", "/a"]),
        count=st.integers(1, 3),
        persistent=st.sampled_from([None, None, True, False]),
        priority=st.sampled_from([5, 5, 5, 1, 9]),
        is_mortal=st.booleans(),
        ends_turn=st.booleans(),
    )
    def publish(
        self,
        by: int,
        channel: str,
        count: int,
        persistent: bool | None,
        priority: int,
        is_mortal: bool,
        ends_turn: bool,
    ) -> None:
        qos: Json = {"priority": priority}
        if persistent is not None:
            qos["persistent"] = persistent
        if is_mortal:
            qos["expiration"] = {"lifeTime": LIFE_MS, "forceDestroy": True}
        self.send(by, channel, count, qos)
        if ends_turn:
            self.end_turn()

    def send(self, by: int, channel: str, count: int, qos: Json) -> None:
        for _ in range(count):
            self.number += 1
            places = [place for place in self.model.places if channel in self.channels(place)]
            ends = self.house.now + LIFE_MS / 1000 if "expiration" in qos else inf
            sent = Sent(self.number, channel, by, qos.get("priority", 5), places, ends)
            asked = self.publisher(by).publish(channel, self.number, ext={"delivery": qos})
            said = self.model.publish(
                sent, persistent=qos.get("persistent"), is_refused=self.backing.is_refusing
            )
            if said != "waits":
                self.model.replies[self.number] = said
            self.publications.append((sent, asked))

    def publisher(self, number: int) -> Client:
        """Who has been silent for too long comes again."""
        publisher = self.publishers[number]
        if publisher.client_id not in {each.client_id for each in self.house.bayeux.sessions}:
            publisher = self.publishers[number] = self.house.client()
        return publisher

    def channels(self, place: Place) -> Sequence[str]:
        """What it subscribed to."""
        if place.is_over:
            return ()
        return CHANNELS if place.kind.label in ("acks", "joe", "tom") else CHANNELS[:1]

    # Receivers

    def person(self, number: int) -> Person:
        return self.people[number % len(self.people)]

    def place(self, person: Person) -> Place | None:
        """Where its client is, if it still has a session."""
        client_id = None if person.client is None else person.client.client_id
        for place in self.model.places:
            if place.client == client_id and not (place.is_over or place.is_away):
                return place
        return None

    @rule(number=people, active=st.sampled_from([None, None, True, False]))
    def come(self, number: int, active: bool | None) -> None:
        """For the first time, back, or in the place of another."""
        person = self.person(number)
        if self.may_come(person):
            self.shake_hands(person, active)

    def may_come(self, person: Person) -> bool:
        if person.kind.name is None:
            return person.kind.options is None or not self.model.is_full
        return self.model.is_store_there and not self.model.is_full

    def shake_hands(self, person: Person, active: bool | None) -> None:
        asked = person.shake_hands(self.house, active)
        place = self.model.claim(person.kind, self.house.now, active=active)
        if person.kind.name is not None:
            self.end_turn(is_quick=True)
        client = person.client
        assert client is not None
        client.learn(asked)
        place.client, place.key = client.client_id or "", client.session.name
        place.deadline = self.house.now + MAX_INTERVAL_S
        client.subscribe(*self.channels(place))
        self.end_turn(is_quick=person.kind.name is not None)

    def ask(
        self,
        number: int,
        channel: str,
        count: int,
        said: list[tuple[int, str]],
        working_on: int,
        ack: str,
        is_patient: bool,
        fate: str,
        delay_ms: int | None,
    ) -> None:
        """Messages come perhaps; then a connect, with whatever else it says."""
        self.send(0, channel, count, {})
        person = self.person(number)
        place = self.place(person) if self.is_here(person) else None
        if place is not None:
            verdicts = self.verdicts(person, said, delay_ms)
            pending = list(person.seqs)[-working_on:] if working_on else []
            batch = self.batch(person, place, ack)
            self.connect(person, verdicts, pending, batch, is_patient=is_patient, fate=fate)
            self.end_turn()

    # What is most of the work is chosen most.
    ask_first = ask_then = ask_on = rule(
        number=people,
        channel=st.sampled_from([*CHANNELS, "/a"]),
        count=st.sampled_from([0, 0, 1, 1, 2, 3]),
        said=words,
        working_on=st.sampled_from([0, 0, 1, 2]),
        ack=st.sampled_from(["right"] * 6 + ["old", "future", "junk", "none"]),
        is_patient=st.booleans(),
        fate=fates,
        delay_ms=st.sampled_from([None, None, 300]),
    )(ask)

    def is_here(self, person: Person) -> bool:
        """Whether it has a session; it comes back if it can."""
        if self.place(person) is None and self.may_come(person):
            self.shake_hands(person, None)
        return self.place(person) is not None

    def do_all(self, person: Person) -> None:
        verdicts = [(seq, "OK", None) for seq in list(person.seqs)[-10:]]
        self.connect(person, verdicts, [], person.acks[-1], is_patient=False, fate="heard")
        self.end_turn()

    def verdicts(
        self, person: Person, said: Sequence[tuple[int, str]], delay_ms: int | None
    ) -> list[tuple[int, str, int | None]]:
        """On what it was told lately, on what it was told long ago, or on nothing."""
        known = [*person.seqs][-5:] or [10**6]
        return [(known[-1 - at] if at < len(known) else -1, word, delay_ms) for at, word in said]

    def batch(self, person: Person, place: Place, ack: str) -> int | None:
        """Never one that was not received, unless that can be told.

        Who connects first after a restart is believed.
        """
        if place.is_restored:
            return person.acks[-1]
        if ack == "future":
            return place.batch + 5
        said = {"old": person.acks[-2:][0], "junk": -1, "none": None}
        return said.get(ack, person.acks[-1])

    def connect(
        self,
        person: Person,
        verdicts: Sequence[tuple[int, str, int | None]],
        pending: Sequence[int],
        ack: int | None,
        *,
        is_patient: bool,
        fate: str,
    ) -> None:
        place, client, now = self.place(person), person.client, self.house.now
        assert place is not None
        assert client is not None
        message: Json = {"channel": "/meta/connect", "connectionType": "long-polling"}
        message["advice"] = ABSENT if is_patient else {"timeout": 0}
        ack = ack if person.kind.settles == "batch" else None
        message["ext"] = person.ask([verdict(*each) for each in verdicts], pending, ack)
        wire = Wire()
        wire.is_cut = fate == "cut"
        asked = client.send(message, wire=wire)
        question = Question(place, place.client, is_cut=wire.is_cut)
        person.questions.append((question, asked, fate == "heard"))
        person.newest = question
        if person.kind.options is not None and self.model.is_full:
            question.state = "turned away"
            self.model.hear(place, now)
            return
        if person.kind.options is not None:
            letters = len(self.model.letters)
            self.model.judge(place, meant(verdicts), now)
            question.has_buried = place.is_durable and len(self.model.letters) > letters
            self.model.keep_pending(place, pending)
        if ack is not None:
            self.model.acknowledge(place, ack)
        if place.is_over:
            question.state = "unknown"
            return
        self.model.connect(question, now, is_patient=is_patient)
        self.model.hear(place, now)

    @rule(number=people, said=words)
    def say(self, number: int, said: list[tuple[int, str]]) -> None:
        """Verdicts without a connect."""
        person = self.person(number)
        place, client = self.place(person), person.client
        if place is not None and client is not None and person.kind.options is not None:
            verdicts = self.verdicts(person, said, None)
            client.publish("/service/delivery", [verdict(*each) for each in verdicts])
            if not self.model.is_full:
                self.model.judge(place, meant(verdicts), self.house.now)
            self.model.hear(place, self.house.now)
            self.end_turn()

    @rule(number=people)
    def give_up_waiting(self, number: int) -> None:
        """The connection of the last request is closed."""
        person = self.person(number)
        if person.questions:
            question, asked, _ = person.questions[-1]
            self.house.abort(asked)
            self.model.abort(question, self.house.now)
            self.end_turn()

    @rule(number=people, ends=st.booleans())
    def go(self, number: int, ends: bool) -> None:
        person = self.person(number)
        place, client = self.place(person), person.client
        if place is None or client is None:
            return
        ext = {"delivery": {"end": True}} if ends else {}
        client.send({"channel": "/meta/disconnect", "ext": ext})
        if person.kind.options is not None and self.model.is_full:
            self.model.hear(place, self.house.now)
        elif person.kind.name is not None and not ends:
            self.model.go_away(place, self.house.now)
        else:
            self.model.say_goodbye(place, self.house.now)
        self.end_turn()

    # Operators

    @precondition(lambda self: self.model.places)
    @rule(number=people, how=st.sampled_from(["hold", "hold for a while", "resume", "clear"]))
    def operate(self, number: int, how: str) -> None:
        there = [place for place in self.model.places if not place.is_over]
        if not there:
            return
        place, bayeux, now = there[number % len(there)], self.house.bayeux, self.house.now
        session = self.session(place)
        match how:
            case "hold":
                bayeux.hold_back(session, "maintenance", "operator")
                self.model.hold(place, None)
            case "hold for a while":
                until_ms = bayeux.node.now_ms() + 1500
                bayeux.hold_back(session, "lunch", "operator", until_ms)
                self.model.hold(place, now + 1.5)
            case "resume":
                bayeux.resume(session)
                self.model.resume(place, now)
            case _:
                bayeux.clear(session)
                self.model.clear(place)
        self.end_turn()

    def session(self, place: Place) -> Session:
        return next(each for each in self.house.bayeux.sessions if each.name == place.key)

    @rule(is_held=st.booleans())
    def hold_a_channel(self, is_held: bool) -> None:
        """The guard does this when most of its receivers refuse what comes there."""
        bayeux = self.house.bayeux
        if is_held:
            bayeux.guard._held[PATIENT] = Held(self.house.now, "nobody wants it")
            self.model.held = {PATIENT}
        else:
            bayeux.release_channel(PATIENT)
            self.model.held = set()
        self.end_turn()

    # The store

    @rule(is_slow=st.booleans())
    def change_pace(self, is_slow: bool) -> None:
        self.is_slow = is_slow
        self.end_turn()

    @precondition(lambda self: self.is_slow and self.model.is_store_there)
    @rule(waits=st.booleans())
    def lose_patience(self, waits: bool) -> None:
        """Publishers have waited too long; later the store answers all the same."""
        self.backing.lose_patience()
        self.model.lose_patience()
        if not waits:
            self.end_turn(is_quick=True)

    @precondition(lambda self: self.model.is_store_there)
    @rule(is_full=st.booleans())
    def fill(self, is_full: bool) -> None:
        self.backing.refuse(is_full=is_full)

    @rule(is_full=st.booleans())
    def fill_what_waits_for_it(self, is_full: bool) -> None:
        if self.backing.overflow(is_full=is_full):
            self.model.is_full = is_full

    @rule()
    def lose_the_store_or_get_it_back(self) -> None:
        if self.model.is_store_there:
            self.kept = copy.deepcopy(self.model)
            self.model.is_store_there = False
            self.backing.go_away()
        else:
            self.kept = None
            self.model.is_store_there = True
            self.backing.come_back()
            self.house.bayeux.store_is_back()
        self.end_turn()

    # Time, and the end of the server

    @rule(seconds=st.sampled_from([0.1, 0.5, 0.5, 1.0, 1.0, 1.7, 1.7, 3.1, 62.0]))
    def wait(self, seconds: float) -> None:
        self.end_turn()
        target = self.house.now + seconds
        while self.house.now < target:
            self.house.now = self.next_time(target)
            self.house.bayeux.tick(self.house.now)
            self.model.tick(self.house.now)
            self.end_turn()
            self.compare()

    def next_time(self, target: float) -> float:
        """Shortly after the next thing happens, and not while it is open whether one does."""
        now = self.house.now
        dues = sorted(due for place in self.model.places for due in place.dues(now))
        time = min(dues[0] + LATE_S, target) if dues else target
        for due in dues:
            if time - LATE_S < due <= time:
                time = due + LATE_S
        return time

    @rule()
    def die_and_come_back(self) -> None:
        self.model = self.kept or self.model
        self.kept = None
        # It takes its time, however little.
        self.house.now += 0.001
        self.house = new_house(self.backing, after=self.house)
        self.model.restart(self.house.now)
        for place in self.model.places:
            session = self.session(place)
            queue = session.queue
            if place.is_away:
                # An id that nobody was ever told.
                place.client = session.client_id
            assert queue.seq >= place.seq
            assert queue.batch >= max((each.batch for each in place.hands), default=0)
            place.seq, place.batch = queue.seq, queue.batch
        self.is_slow, self.publications = False, []
        for person in self.people:
            person.move(self.house)
        for publisher in self.publishers:
            publisher.house = self.house
        self.end_turn()

    def end_turn(self, *, is_quick: bool = False) -> None:
        """All who have something waiting are told, and the store answers if it likes to."""
        while True:
            is_busy = self.house.flush()
            self.model.tell(self.house.now)
            if self.model.is_store_there and (is_quick or not self.is_slow):
                is_busy |= self.backing.answer()
                self.model.store_answers(self.house.now)
            if not is_busy:
                return

    # What must hold

    @invariant()
    def compare(self) -> None:
        if not hasattr(self, "model"):
            return
        for person in self.people:
            self.look_at_answers(person)
        self.look_at_publications()
        Comparison(self.house, self.backing, self.model).make()
        self.look_at_taken()

    def look_at_answers(self, person: Person) -> None:
        for question, asked, is_heard in list(person.questions):
            if question.state in ("held", "going"):
                assert asked.is_held
                continue
            is_newest = person.newest is question
            person.questions.remove((question, asked, is_heard))
            if question.is_cut:
                assert asked.is_held
            else:
                self.look_at_answer(person, question, asked, is_heard=is_heard and is_newest)

    def look_at_answer(
        self, person: Person, question: Question, asked: Asked, *, is_heard: bool
    ) -> None:
        reply = asked.replies[-1]
        match question.state:
            case "answered":
                assert reply["successful"], reply
                self.look_at_events(person, question, asked)
                if is_heard:
                    if person.kind.settles == "batch" and question.batch:
                        assert question.batch > max(person.acks)
                    person.hear(asked, question.batch)
                    self.told.setdefault(question.client, set()).update(asked.data)
            case "emptied":
                assert asked.events == []
            case "overtaken":
                assert reply["error"].startswith("409")
            case "turned away":
                assert reply["error"].startswith("503")
                assert reply["advice"]["reconnect"] == "retry"
            case _:
                assert question.state == "unknown"
                assert reply["error"].startswith("402")

    def look_at_events(self, person: Person, question: Question, asked: Asked) -> None:
        assert asked.data == [number for number, _ in question.told]
        if person.kind.settles == "batch":
            assert asked.replies[-1].get("ext", {}).get("ack", 0) == question.batch
        if person.kind.options is None:
            return
        told = [event["ext"]["delivery"] for event in asked.events]
        assert [each.get("redelivered", 0) for each in told] == [
            redelivered for _, redelivered in question.told
        ]
        used = self.used.setdefault(question.place.serial, set())
        seqs = [each["seq"] for each in told]
        assert seqs == sorted(seqs)
        assert used.isdisjoint(seqs)
        used.update(seqs)

    def look_at_publications(self) -> None:
        """Nobody is told that it was kept before it was, or left without an answer."""
        for sent, asked in list(self.publications):
            said = self.model.replies.get(sent.number)
            if said is None:
                assert asked.is_held
                continue
            self.publications.remove((sent, asked))
            assert asked.reply["successful"] == (said == "kept")
            if said != "kept":
                assert ("unknown" in asked.reply["error"].split(":")[1]) == (said == "unknown")
            elif sent.is_kept:
                self.promised += [(p.key, sent.number) for p in sent.places if p.is_durable]

    def look_at_taken(self) -> None:
        """Nothing counts as taken by somebody who has not got it."""
        for client, number in self.model.takers:
            assert number in self.told.get(client, ()), number
        self.model.takers.clear()

    def teardown(self) -> None:
        try:
            self.compare()
        except AssertionError:
            # This is known already.
            return
        if hasattr(self, "model"):
            self.repair_everything()

    def repair_everything(self) -> None:
        """Then all that was kept must be somewhere, and what is somewhere must arrive."""
        if not self.model.is_store_there:
            self.lose_the_store_or_get_it_back()
        self.backing.refuse(is_full=False)
        self.fill_what_waits_for_it(False)
        self.hold_a_channel(False)
        self.change_pace(False)
        for place in self.model.places:
            if not place.is_over:
                self.house.bayeux.resume(self.session(place))
                self.model.resume(place, self.house.now)
        for person in self.people:
            self.shake_hands(person, True)
            self.do_all(person)
        self.look_for_promised()
        for _ in range(12):
            self.wait(1.0)
            for person in self.people:
                if self.place(person) is not None:
                    self.do_all(person)
                    self.look_at_answers(person)
        self.compare()
        assert not any(map(len, self.model.places))
        self.look_for_promised()

    def look_for_promised(self) -> None:
        places = {place.key: place for place in self.model.places}
        for key, number in self.promised:
            if (key, number) not in self.model.fates:
                here = places[key].hands + places[key].returned + places[key].waiting
                assert number in [each.number for each in here], (key, number)


def meant(
    verdicts: Sequence[tuple[int, str, int | None]],
) -> list[tuple[int, str, float | None]]:
    """What the server makes of it."""
    return [
        (seq, WORDS[word], None if delay_ms is None else delay_ms / 1000)
        for seq, word, delay_ms in verdicts
    ]
