"""What clients are told, and what must never happen."""

from collections.abc import Sequence

from tests.unit.bayeux.delivery_model import Model
from tests.unit.bayeux.delivery_people import Person
from tests.unit.bayeux.delivery_receiver import Question, Receiver, Sent
from tests.unit.bayeux.delivery_store import Backing
from tests.unit.bayeux.delivery_world import Comparison
from tests.unit.bayeux.harness import Asked, Server


class Invariants:
    """Remembers what each client has got, and compares it with what the server makes of it."""

    def __init__(self, people: Sequence[Person]) -> None:
        self._people = people
        self.accepted: list[tuple[Sent, Asked]] = []
        # Other requests that the store must know before they are answered.
        self.kept: list[tuple[Receiver, Asked]] = []
        # Disconnects with the requests before them.
        self.goodbyes: list[tuple[Asked, list[Asked]]] = []
        # What each client has got; the numbers that were used for each receiver.
        self._received: dict[str, set[int]] = {}
        self._used: dict[int, set[int]] = {}
        # What publishers were told was kept, for each durable receiver.
        self._promised: list[tuple[str, int]] = []

    def look(self, server: Server, backing: Backing, model: Model) -> None:
        """Look at the answers to all clients, then at the whole server."""
        for person in self._people:
            self._look_at_answers(person)
        self._look_at_accepted(model)
        self._look_at_goodbyes()
        self._look_at_kept(model)
        Comparison(server, backing, model).make()
        self._look_at_taken(model)

    def _look_at_answers(self, person: Person) -> None:
        for question, asked, is_heard in list(person.questions):
            if question.state in ("held", "going"):
                assert asked.is_held
                continue
            is_newest = person.newest is question
            person.questions.remove((question, asked, is_heard))
            if question.is_cut:
                assert asked.is_held
            else:
                self._look_at_answer(person, question, asked, is_heard=is_heard and is_newest)

    def _look_at_answer(
        self, person: Person, question: Question, asked: Asked, *, is_heard: bool
    ) -> None:
        reply = asked.replies[-1]
        match question.state:
            case "answered":
                assert reply["successful"], reply
                self._look_at_events(person, question, asked)
                if is_heard:
                    if person.kind.settles == "batch" and question.batch:
                        assert question.batch > max(person.acks)
                    person.hear(asked, question.batch)
                    self._received.setdefault(question.client, set()).update(asked.data)
            case "emptied":
                assert asked.events == []
            case "superseded":
                assert reply["error"].startswith("409")
            case "refused":
                assert reply["error"].startswith("503")
                assert reply["advice"]["reconnect"] == "retry"
            case _:
                assert question.state == "unknown"
                assert reply["error"].startswith("402")

    def _look_at_events(self, person: Person, question: Question, asked: Asked) -> None:
        assert asked.data == [number for number, _ in question.told]
        if person.kind.settles == "batch":
            assert asked.replies[-1].get("ext", {}).get("ack", 0) == question.batch
        if person.kind.options is None:
            return
        told = [event["ext"]["delivery"] for event in asked.events]
        assert [each.get("redelivered", 0) for each in told] == [
            redelivered for _, redelivered in question.told
        ]
        used = self._used.setdefault(question.receiver.serial, set())
        seqs = [each["seq"] for each in told]
        assert seqs == sorted(seqs)
        assert used.isdisjoint(seqs)
        used.update(seqs)

    def _look_at_accepted(self, model: Model) -> None:
        """No publisher is told that a message is kept before it is, or gets no answer."""
        for sent, asked in list(self.accepted):
            said = model.replies.get(sent.number)
            if said is None:
                assert asked.is_held
                continue
            self.accepted.remove((sent, asked))
            assert asked.reply["successful"] == (said == "kept")
            if said != "kept":
                assert ("unknown" in asked.reply["error"].split(":")[1]) == (said == "unknown")
            elif sent.is_kept:
                self._promised += [(p.key, sent.number) for p in sent.receivers if p.is_durable]

    def _look_at_goodbyes(self) -> None:
        """No disconnect is answered before the client's earlier requests.

        cometd.js closes its socket then, unless a connect has no reply: so it would never close.
        """
        for goodbye, before in list(self.goodbyes):
            if not goodbye.is_held:
                self.goodbyes.remove((goodbye, before))
                if goodbye.replies[-1]["successful"]:
                    assert all(each.is_lost or not each.is_held for each in before)

    def _look_at_kept(self, model: Model) -> None:
        """These are answered when the store has what they change."""
        for receiver, asked in list(self.kept):
            if asked.is_held:
                assert model.keeps_waiting(receiver)
            else:
                self.kept.remove((receiver, asked))
                assert asked.replies[-1]["successful"]

    def _look_at_taken(self, model: Model) -> None:
        """No message counts as taken by a client that has not got it."""
        for client, number in model.takers:
            assert number in self._received.get(client, ()), number
        model.takers.clear()

    def look_for_promised(self, model: Model) -> None:
        """Each message that a publisher was told is kept is somewhere, or its fate is known."""
        receivers = {receiver.key: receiver for receiver in model.receivers}
        for key, number in self._promised:
            if (key, number) not in model.fates:
                here = receivers[key].in_flight + receivers[key].returned + receivers[key].new
                assert number in [each.number for each in here], (key, number)
