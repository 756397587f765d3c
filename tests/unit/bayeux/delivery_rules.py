"""What publishers, receivers, operators, the network, the store and time do, in any order.

Whatever happens is told to a real server and to the model; after each step both must agree.
"""

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.unit.bayeux.delivery_people import KINDS, WORDS, Person, Said
from tests.unit.bayeux.delivery_receiver import CHANNELS, Kind, Receiver
from tests.unit.bayeux.delivery_stage import LIVES_MS, Stage
from tests.unit.bayeux.delivery_store import Backing

people = st.sampled_from([0, 0, 1])
words = st.lists(
    st.tuples(st.sampled_from([0, 0, 1, 2, 5]), st.sampled_from(list(WORDS))), max_size=3
)
fates = st.sampled_from(["heard"] * 5 + ["lost", "dropped", "dropped", "cut"])


class DeliveryRules(RuleBasedStateMachine):
    """Everybody at once."""

    stage: Stage

    def open_store(self) -> Backing:
        raise NotImplementedError

    @initialize(
        kinds=st.lists(st.sampled_from(KINDS), min_size=1, max_size=2, unique=True),
        is_slow=st.booleans(),
    )
    def open(self, kinds: Sequence[Kind], is_slow: bool) -> None:
        self.stage = Stage(self.open_store(), kinds)
        self.stage.is_slow = is_slow

    def person(self, number: int) -> Person:
        return self.stage.people[number % len(self.stage.people)]

    # Publishers

    @rule(
        by=st.integers(0, 1),
        channel=st.sampled_from([*CHANNELS, "/a", "/a"]),
        count=st.integers(1, 3),
        persistent=st.sampled_from([None, None, True, False]),
        priority=st.sampled_from([5, 5, 5, 1, 9]),
        life_ms=st.sampled_from([None, None, None, None, *LIVES_MS]),
        ends_turn=st.booleans(),
    )
    def publish(
        self,
        by: int,
        channel: str,
        count: int,
        persistent: bool | None,
        priority: int,
        life_ms: int | None,
        ends_turn: bool,
    ) -> None:
        qos: dict[str, Any] = {"priority": priority}
        if persistent is not None:
            qos["persistent"] = persistent
        if life_ms is not None:
            qos["expiration"] = {"lifeTime": life_ms, "forceDestroy": True}
        self.stage.send(by, channel, count, qos)
        if ends_turn:
            self.stage.end_turn()

    # Receivers

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
        """Perhaps publish messages; then connect with verdicts, pending messages and an ack."""
        stage, person = self.stage, self.person(number)
        stage.send(0, channel, count, {})
        if stage.receiver(person) is None:
            stage.shake_hands(person, None)
        receiver = stage.receiver(person)
        if receiver is not None:
            stage.connect(
                person,
                said=self.verdicts(person, said, delay_ms),
                pending=list(person.seqs)[-working_on:] if working_on else [],
                ack=self.batch(person, receiver, ack),
                is_patient=is_patient,
                fate=fate,
            )

    # Connects are most of the work, so they are chosen most often.
    ask_first = ask_then = ask_on = ask_again = rule(
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

    def verdicts(
        self, person: Person, said: Sequence[tuple[int, str]], delay_ms: int | None
    ) -> list[Said]:
        """On what it was handed lately or long ago, or on nothing that there is."""
        known = [*person.seqs][-5:] or [10**6]
        return [(known[-1 - at] if at < len(known) else -1, word, delay_ms) for at, word in said]

    def batch(self, person: Person, receiver: Receiver, ack: str) -> int | None:
        """Never a batch that was not received, unless the server can tell.

        The first connect after a restart is believed.
        """
        if receiver.is_restored:
            return person.acks[-1]
        if ack == "future":
            return receiver.batch + 5
        said = {"old": person.acks[-2:][0], "junk": -1, "none": None}
        return said.get(ack, person.acks[-1])

    @rule(number=people, said=words)
    def say(self, number: int, said: list[tuple[int, str]]) -> None:
        person = self.person(number)
        self.stage.say(person, self.verdicts(person, said, None))

    @rule(number=people)
    def subscribe_again(self, number: int) -> None:
        self.stage.subscribe(self.person(number))

    @rule(
        number=people,
        what=st.sampled_from(
            ["come", "hold me", "wake me", "stop waiting", "leave", "end", "discard"]
        ),
    )
    def come_or_go(self, number: int, what: str) -> None:
        person = self.person(number)
        match what:
            case "leave" | "end" | "discard":
                self.stage.go(person, what)
            case "stop waiting":
                self.stage.give_up_waiting(person)
            case _:
                active = {"hold me": False, "wake me": True}.get(what)
                self.stage.shake_hands(person, active)

    # Operators, and what befalls the server

    @rule(
        number=people,
        what=st.sampled_from(["hold", "hold a while", "resume", "resume", "clear"]),
    )
    def operate(self, number: int, what: str) -> None:
        there = [receiver for receiver in self.stage.model.receivers if not receiver.is_over]
        if not there:
            return
        receiver = there[number % len(there)]
        match what:
            case "resume":
                self.stage.resume(receiver)
            case "clear":
                self.stage.clear(receiver)
            case _:
                self.stage.hold(receiver, 1.5 if what == "hold a while" else None)

    @rule(
        what=st.sampled_from(
            [
                *("unknown", "unknown, then known", "lost", "back", "back"),
                *("refuses", "keeps", "no room", "room", "hold channel", "release channel"),
            ]
        )
    )
    def befall(self, what: str) -> None:
        """Something happens, mostly to the store."""
        stage = self.stage
        match what:
            case "unknown" | "unknown, then known":
                stage.end_wait_limit()
                stage.end_turn(is_quick=what != "unknown")
            case "lost":
                stage.lose_store()
            case "back":
                stage.regain_store()
            case "refuses" | "keeps":
                stage.refuse(is_full=what == "refuses")
            case "no room" | "room":
                stage.overflow(is_full=what == "no room")
            case _:
                stage.hold_channel(is_held=what == "hold channel")

    @rule()
    def let_the_store_answer(self) -> None:
        self.stage.end_turn(is_quick=True)

    @rule()
    def die_and_come_back(self) -> None:
        self.stage.restart()

    @rule(seconds=st.sampled_from([0.1, 0.5, 0.5, 1.0, 1.0, 1.7, 1.7, 3.1, 62.0]))
    def wait(self, seconds: float) -> None:
        self.stage.wait(seconds)

    # What must hold

    @invariant()
    def agree(self) -> None:
        if hasattr(self, "stage"):
            self.stage.look()

    def teardown(self) -> None:
        try:
            self.agree()
        except AssertionError:
            # The failure is known already.
            return
        if hasattr(self, "stage"):
            self.repair()

    def repair(self) -> None:
        """Then all that was kept must be somewhere, and must arrive."""
        stage = self.stage
        stage.regain_store()
        stage.refuse(is_full=False)
        stage.overflow(is_full=False)
        stage.hold_channel(is_held=False)
        stage.is_slow = False
        for receiver in stage.model.receivers:
            if not receiver.is_over:
                stage.resume(receiver)
        for person in stage.people:
            stage.shake_hands(person, True)
        stage.invariants.look_for_promised(stage.model)
        for _ in range(12 + stage.number):
            if not any(map(len, stage.model.receivers)):
                break
            for person in stage.people:
                done: list[Said] = [(seq, "OK", None) for seq in list(person.seqs)[-10:]]
                stage.connect(person, said=done, ack=person.acks[-1])
            stage.wait(1.0)
        assert not any(map(len, stage.model.receivers))
        stage.invariants.look_for_promised(stage.model)
