"""What must become of messages according to the design: lists and dicts, nothing clever.

A `Model` is a whole server as its clients see it. A test that compares it with a real one tells it
what happens, in the same order, and the time.
"""

from collections import Counter
from collections.abc import Iterable

from tests.unit.bayeux.delivery_answers import Answering
from tests.unit.bayeux.delivery_books import DELIVERY_ENDED, FULL, LOST, SILENT
from tests.unit.bayeux.delivery_receiver import MAX_INTERVAL_S, Copy, Kind, Receiver, Sent
from tests.unit.delivery.queues.test_dispatcher_model import Naive

# How long a named session waits for its client, and one that has retries but no name (seconds).
SESSION_S = 60.0
LONG_S = 24 * 3600.0
# How much later a client is given up if there is no room for dead letters (seconds).
POSTPONED_S = 1.0


class Model(Answering):
    """What publishers were promised, who comes and goes, and what time does."""

    def __init__(self, now: float) -> None:
        super().__init__()
        # The time, as it was told last.
        self.now = now
        # Channels with pending publishes: the messages, and the answers of the store.
        self.publish_order: dict[str, list[tuple[Sent, list[str]]]] = {}
        # What publishers were told that had to wait.
        self.replies: dict[int, str] = {}

    # Publishing

    def publish(self, sent: Sent, *, persistent: bool | None, is_refused: bool = False) -> str:
        """What the publisher is told at once, or that it waits for the store."""
        homes = [
            receiver for receiver in sent.receivers if receiver.is_durable and not receiver.is_over
        ]
        waiting = self.publish_order.get(sent.channel)
        if not homes or persistent is False:
            if waiting is None:
                self.show(sent)
                return "kept"
            waiting.append((sent, ["kept"]))
            return "waits"
        if not self.is_store_there:
            return "refused"
        sent.is_kept = not is_refused
        answer: list[str] = []
        self.publish_order.setdefault(sent.channel, []).append((sent, answer))
        self.asked.append(("keep", sent, answer))
        return "waits"

    def unseen(self) -> list[Sent]:
        """Messages that the store may have and that were not delivered."""
        accepted = [sent for waiting in self.publish_order.values() for sent, _ in waiting]
        return accepted + [asked[1] for asked in self.asked if asked[0] == "keep"]

    def end_wait_limit(self) -> None:
        """Publishers have waited too long; what was kept is delivered when that is known."""
        for what, sent, *rest in self.asked:
            if what == "keep" and not rest[0]:
                rest[0].append("unknown")
                self.move(sent.channel)

    def store_answers(self, now: float) -> bool:
        """The store answers all that it was asked so far; return whether there was anything.

        Replies that wait for it leave at the end of the turn: until then, they take room.
        """
        asked, self.asked = self.asked, []
        for what, subject, *rest in asked:
            if what == "keep":
                self.kept(subject, rest[0])
            elif what == "refuse":
                subject.has_refused = False
        for what, subject, *_ in asked:
            if what == "leave":
                self.leave(subject, now)
            elif what == "subscribe":
                subject.catching_up -= 1
        return bool(asked)

    def kept(self, sent: Sent, answer: list[str]) -> None:
        if answer == ["unknown"]:
            if sent.is_kept:
                sent.is_late = True
                self.show(sent)
        else:
            answer.append("kept" if sent.is_kept else "refused")
            self.move(sent.channel)

    def move(self, channel: str) -> None:
        """The first publishes of the channel end their wait, as far as they have an answer."""
        waiting = self.publish_order[channel]
        while waiting and waiting[0][1]:
            sent, answer = waiting.pop(0)
            self.replies[sent.number] = answer[0]
            if answer == ["kept"]:
                self.show(sent)
        if not waiting:
            del self.publish_order[channel]

    def show(self, sent: Sent) -> None:
        for receiver in sent.receivers:
            self.books["accepted"] += 1
            if receiver.is_over or receiver.is_shut:
                if (receiver.has_failed or receiver.is_shut) and not self.is_full:
                    self.bury(receiver, [Copy(sent)], DELIVERY_ENDED)
                else:
                    self.settle(receiver, [Copy(sent)], "discarded")
            elif self.has_room(receiver):
                self.queue_up(receiver, Copy(sent))
            elif sent.ends <= self.now:
                self.settle(receiver, [Copy(sent)], "expired")
            elif self.is_full:
                self.settle(receiver, [Copy(sent)], "discarded")
            else:
                self.bury(receiver, [Copy(sent)], FULL)

    def has_room(self, receiver: Receiver) -> bool:
        """In a full queue, what has expired makes room."""
        if len(receiver) >= receiver.kind.most:
            self.expire(receiver, self.now)
        return len(receiver) < receiver.kind.most

    def queue_up(self, receiver: Receiver, copy: Copy) -> None:
        """Behind all that is at least as urgent; if it is late, where it would be otherwise."""
        waiting = receiver.new
        at = len(waiting)
        while at and _passes(copy.sent, waiting[at - 1].sent):
            at -= 1
        waiting.insert(at, copy)

    # Coming and going

    def claim(self, kind: Kind, now: float, *, active: bool | None) -> Receiver:
        """A client handshakes: it takes its named session over, if there is one."""
        for receiver in self.receivers:
            if kind.name is not None and receiver.kind.name == kind.name and not receiver.is_over:
                self.take_over(receiver, "", now, active=active)
                return receiver
        receiver = Receiver(kind, "", "", now)
        self.receivers.append(receiver)
        if active is False and receiver.can_stop:
            self.hold(receiver, None)
        return receiver

    def take_over(
        self, receiver: Receiver, client: str, now: float, *, active: bool | None
    ) -> None:
        self.turn_away(receiver)
        receiver.change_client()
        receiver.client = client
        receiver.is_away = receiver.has_connected = False
        receiver.ends_at = None
        if receiver.is_shut:
            receiver.contact, receiver.is_shut = (
                Naive(receiver.kind.retries, receiver.kind.delay_ms / 1000),
                False,
            )
            receiver.hold_until = None
            if active is False:
                self.hold(receiver, None)
            return
        receiver.contact.contact(now)
        if active is False and not receiver.contact.is_held:
            self.hold(receiver, None)
        elif active is True:
            self.resume(receiver, now)

    def go_away(self, receiver: Receiver, now: float) -> None:
        """Its client leaves; a named session waits for the next one."""
        self.turn_away(receiver)
        receiver.change_client()
        receiver.is_away = True
        receiver.deadline, receiver.ends_at = None, now + SESSION_S

    def stop(self, receiver: Receiver, now: float) -> None:
        """A named session ends because its client says so: what it did not get is dead."""
        self.bury_all(receiver, DELIVERY_ENDED, now)
        self.say_goodbye(receiver, now)
        receiver.has_failed = True

    def say_goodbye(self, receiver: Receiver, now: float) -> None:
        """The session ends: what is in flight is discarded, what waits goes along if it may."""
        for _ in range(2):
            self.settle(receiver, list(receiver.in_flight), "discarded")
            if receiver.question is not None:
                self.hand_over(receiver.question, now)
        if not receiver.can_stop:
            self.expire(receiver, now)
            if receiver.kind.settles == "written":
                self.ack(receiver, receiver.returned + receiver.new)
        self.end(receiver, failed=False)

    # Time

    def tick(self, now: float) -> None:
        self.now = now
        there = [receiver for receiver in self.receivers if not receiver.is_over]
        for receiver in there:
            self.expire(receiver, now)
        for receiver in there:
            if not receiver.is_over:
                self.look_at(receiver, now)

    def look_at(self, receiver: Receiver, now: float) -> None:
        if receiver.quiet_until <= now:
            receiver.quiet_until = 0.0
        if not self.is_full:
            self.look_at_failures(receiver, now)
        if not receiver.is_over and receiver.deadline is not None and receiver.deadline <= now:
            if receiver.question is not None:
                self.hand_over(receiver.question, now)
            elif self.keeps_waiting(receiver):
                receiver.deadline = now + MAX_INTERVAL_S
            else:
                self.lose(receiver, now)

    def look_at_failures(self, receiver: Receiver, now: float) -> None:
        if (
            receiver.in_flight
            and receiver.in_flight[0].due is not None
            and receiver.in_flight[0].due <= now
            and not self.keeps_waiting(receiver)
        ):
            self.fail(receiver, receiver.in_flight[0], SILENT, None, now)
        if receiver.is_over:
            return
        if receiver.ends_at is not None and receiver.ends_at <= now and receiver.question is None:
            self.bury_all(receiver, LOST, now)
            self.end(receiver, failed=True)
            return
        if receiver.hold_until is not None and receiver.hold_until <= now:
            self.resume(receiver, now)
        if receiver.can_stop and not receiver.is_shut:
            receiver.contact.tick(now)
            if receiver.contact.is_dead:
                self.bury_all(receiver, DELIVERY_ENDED, now)
                self.end(receiver, failed=True)

    def lose(self, receiver: Receiver, now: float) -> None:
        """The client was silent for too long."""
        if receiver.kind.label == "plain":
            self.end(receiver, failed=False)
            return
        if self.is_full:
            receiver.deadline = now + POSTPONED_S
            return
        receiver.deadline = None
        if receiver.kind.options is not None:
            receiver.ends_at = now + (SESSION_S if receiver.is_durable else LONG_S)
        if receiver.is_shut and receiver.is_durable:
            return
        receiver.contact.lost(now)
        if receiver.contact.is_dead or receiver.is_shut:
            self.bury_all(receiver, LOST, now)
            self.end(receiver, failed=True)
            return
        for copy in receiver.in_flight:
            copy.redelivered += 1
            copy.fail(LOST)
            receiver.fail()
            if copy.is_pending:
                copy.batch = 0
        receiver.return_copies(receiver.in_flight)

    # Restarts

    def restart(self, now: float) -> None:
        """Named sessions continue with what was kept; everything else is lost."""
        self.now = now
        unseen = dict.fromkeys(sent for sent in self.unseen() if sent.is_kept)
        self.receivers = [
            receiver for receiver in self.receivers if receiver.is_durable and not receiver.is_over
        ]
        self.publish_order, self.asked, self.books = {}, [], Counter()
        self.is_store_there, self.is_full, self.held = True, False, set()
        for receiver in self.receivers:
            for queue in (receiver.in_flight, receiver.returned, receiver.new):
                queue[:] = [copy for copy in queue if copy.sent.is_kept]
            receiver.new += [Copy(sent) for sent in unseen if sent.is_for(receiver)]
            receiver.new.sort(key=lambda copy: (-copy.sent.priority, copy.number))
            self.revive(receiver, now)
            self.books["restored"] += len(receiver)
            self.expire(receiver, now)
            if receiver.is_shut:
                # What came late for a receiver that had stopped.
                self.bury_all(receiver, DELIVERY_ENDED, now)
        self.clean_up(unseen)

    def clean_up(self, unseen: Iterable[Sent]) -> None:
        """Discard what came late for sessions that had ended."""
        there = {receiver.key for receiver in self.receivers}
        for sent in unseen:
            for receiver in sent.receivers:
                if receiver.is_durable and receiver.key not in there:
                    self.books["restored"] += 1
                    self.settle(receiver, [Copy(sent)], "discarded")

    def revive(self, receiver: Receiver, now: float) -> None:
        """Its clocks start again."""
        kind, was_held = receiver.kind, receiver.contact.is_held
        for copy in receiver.in_flight + receiver.returned:
            copy.was_alone = receiver.in_flight == [copy]
            copy.batch, copy.until = 0 if copy.until else copy.batch, 0
        for copy in receiver.in_flight:
            copy.is_pending = False
            copy.due = receiver.due(now)
        if kind.settles == "written":
            receiver.return_copies(receiver.in_flight)
        receiver.window, receiver.on_last_attempt = 0, None
        if receiver.returned:
            receiver.fail()
        receiver.contact = Naive(kind.retries, kind.delay_ms / 1000)
        if was_held:
            receiver.contact.hold()
        if receiver.hold_until is not None:
            receiver.hold_until = max(receiver.hold_until, now)
        receiver.question, receiver.quiet_until = None, 0.0
        receiver.repeats = receiver.former_seq = receiver.heard = receiver.before = 0
        receiver.last, receiver.catching_up = None, 0
        receiver.is_restored = receiver.has_connected = True
        receiver.deadline = None if receiver.is_away else now + MAX_INTERVAL_S
        receiver.ends_at = now + SESSION_S if receiver.is_away else None


def _passes(sent: Sent, other: Sent) -> bool:
    is_older = sent.is_late and sent.number < other.number
    return other.priority < sent.priority or (other.priority == sent.priority and is_older)
