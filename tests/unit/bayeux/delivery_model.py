"""What must become of messages according to the design: lists and dicts, nothing clever.

A `Model` is a whole server as its clients see it. A test that compares it with a real one tells it
what happens, in the same order, and the time.
"""

from collections import Counter
from collections.abc import Iterable

from tests.unit.bayeux.delivery_answers import Answering
from tests.unit.bayeux.delivery_books import DELIVERY_ENDED, FULL, LOST, SILENT
from tests.unit.bayeux.delivery_place import MAX_INTERVAL_S, Copy, Kind, Place, Sent
from tests.unit.delivery.test_dispatcher_model import Naive

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
        homes = [place for place in sent.places if place.is_durable and not place.is_over]
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
        for place in sent.places:
            self.books["accepted"] += 1
            if place.is_over or place.is_shut:
                if (place.has_failed or place.is_shut) and not self.is_full:
                    self.bury(place, [Copy(sent)], DELIVERY_ENDED)
                else:
                    self.settle(place, [Copy(sent)], "discarded")
            elif self.has_room(place):
                self.queue_up(place, Copy(sent))
            elif sent.ends <= self.now:
                self.settle(place, [Copy(sent)], "expired")
            elif self.is_full:
                self.settle(place, [Copy(sent)], "discarded")
            else:
                self.bury(place, [Copy(sent)], FULL)

    def has_room(self, place: Place) -> bool:
        """In a full queue, what has expired makes room."""
        if len(place) >= place.kind.most:
            self.expire(place, self.now)
        return len(place) < place.kind.most

    def queue_up(self, place: Place, copy: Copy) -> None:
        """Behind all that is at least as urgent; if it is late, where it would be otherwise."""
        waiting = place.waiting
        at = len(waiting)
        while at and _passes(copy.sent, waiting[at - 1].sent):
            at -= 1
        waiting.insert(at, copy)

    # Coming and going

    def claim(self, kind: Kind, now: float, *, active: bool | None) -> Place:
        """A client handshakes: it takes its named session over, if there is one."""
        for place in self.places:
            if kind.name is not None and place.kind.name == kind.name and not place.is_over:
                self.take_over(place, "", now, active=active)
                return place
        place = Place(kind, "", "", now)
        self.places.append(place)
        if active is False and place.can_stop:
            self.hold(place, None)
        return place

    def take_over(self, place: Place, client: str, now: float, *, active: bool | None) -> None:
        self.turn_away(place)
        place.change_client()
        place.client = client
        place.is_away = place.has_connected = False
        place.ends_at = None
        if place.is_shut:
            place.contact, place.is_shut = (
                Naive(place.kind.retries, place.kind.delay_ms / 1000),
                False,
            )
            place.hold_until = None
            if active is False:
                self.hold(place, None)
            return
        place.contact.contact(now)
        if active is False and not place.contact.is_held:
            self.hold(place, None)
        elif active is True:
            self.resume(place, now)

    def go_away(self, place: Place, now: float) -> None:
        """Its client leaves; a named session waits for the next one."""
        self.turn_away(place)
        place.change_client()
        place.is_away = True
        place.deadline, place.ends_at = None, now + SESSION_S

    def stop(self, place: Place, now: float) -> None:
        """A named session ends because its client says so: what it did not get is dead."""
        self.bury_all(place, DELIVERY_ENDED, now)
        self.say_goodbye(place, now)
        place.has_failed = True

    def say_goodbye(self, place: Place, now: float) -> None:
        """The session ends: what is in flight is discarded, what waits goes along if it may."""
        for _ in range(2):
            self.settle(place, list(place.in_flight), "discarded")
            if place.question is not None:
                self.hand_over(place.question, now)
        if not place.can_stop:
            self.expire(place, now)
            if place.kind.settles == "written":
                self.ack(place, place.returned + place.waiting)
        self.end(place, failed=False)

    # Time

    def tick(self, now: float) -> None:
        self.now = now
        there = [place for place in self.places if not place.is_over]
        for place in there:
            self.expire(place, now)
        for place in there:
            if not place.is_over:
                self.look_at(place, now)

    def look_at(self, place: Place, now: float) -> None:
        if place.quiet_until <= now:
            place.quiet_until = 0.0
        if not self.is_full:
            self.look_at_failures(place, now)
        if not place.is_over and place.deadline is not None and place.deadline <= now:
            if place.question is not None:
                self.hand_over(place.question, now)
            else:
                self.lose(place, now)

    def look_at_failures(self, place: Place, now: float) -> None:
        if place.in_flight and place.in_flight[0].due is not None and place.in_flight[0].due <= now:
            self.fail(place, place.in_flight[0], SILENT, None, now)
        if place.is_over:
            return
        if place.ends_at is not None and place.ends_at <= now and place.question is None:
            self.bury_all(place, LOST, now)
            self.end(place, failed=True)
            return
        if place.hold_until is not None and place.hold_until <= now:
            self.resume(place, now)
        if place.can_stop and not place.is_shut:
            place.contact.tick(now)
            if place.contact.is_dead:
                self.bury_all(place, DELIVERY_ENDED, now)
                self.end(place, failed=True)

    def lose(self, place: Place, now: float) -> None:
        """The client was silent for too long."""
        if place.kind.label == "plain":
            self.end(place, failed=False)
            return
        if self.is_full:
            place.deadline = now + POSTPONED_S
            return
        place.deadline = None
        if place.kind.options is not None:
            place.ends_at = now + (SESSION_S if place.is_durable else LONG_S)
        if place.is_shut and place.is_durable:
            return
        place.contact.lost(now)
        if place.contact.is_dead or place.is_shut:
            self.bury_all(place, LOST, now)
            self.end(place, failed=True)
            return
        for copy in place.in_flight:
            copy.redelivered += 1
            copy.fail(LOST)
            place.fail()
            if copy.is_pending:
                copy.batch = 0
        place.take_back(place.in_flight)

    # Restarts

    def restart(self, now: float) -> None:
        """Named sessions continue with what was kept; everything else is lost."""
        self.now = now
        unseen = dict.fromkeys(sent for sent in self.unseen() if sent.is_kept)
        self.places = [place for place in self.places if place.is_durable and not place.is_over]
        self.publish_order, self.asked, self.books = {}, [], Counter()
        self.is_store_there, self.is_full, self.held = True, False, set()
        for place in self.places:
            for queue in (place.in_flight, place.returned, place.waiting):
                queue[:] = [copy for copy in queue if copy.sent.is_kept]
            place.waiting += [Copy(sent) for sent in unseen if sent.is_for(place)]
            place.waiting.sort(key=lambda copy: (-copy.sent.priority, copy.number))
            self.revive(place, now)
            self.books["restored"] += len(place)
            self.expire(place, now)
            if place.is_shut:
                # What came late for a receiver that had stopped.
                self.bury_all(place, DELIVERY_ENDED, now)
        self.clean_up(unseen)

    def clean_up(self, unseen: Iterable[Sent]) -> None:
        """Discard what came late for sessions that had ended."""
        there = {place.key for place in self.places}
        for sent in unseen:
            for place in sent.places:
                if place.is_durable and place.key not in there:
                    self.books["restored"] += 1
                    self.settle(place, [Copy(sent)], "discarded")

    def revive(self, place: Place, now: float) -> None:
        """Its clocks start again."""
        kind, was_held = place.kind, place.contact.is_held
        for copy in place.in_flight + place.returned:
            copy.was_alone = place.in_flight == [copy]
            copy.batch, copy.until = 0 if copy.until else copy.batch, 0
        for copy in place.in_flight:
            copy.is_pending = False
            copy.due = now + kind.response_ms / 1000 if kind.response_ms else None
        if kind.settles == "written":
            place.take_back(place.in_flight)
        place.window, place.suspect = 0, None
        if place.returned:
            place.fail()
        place.contact = Naive(kind.retries, kind.delay_ms / 1000)
        if was_held:
            place.contact.hold()
        if place.hold_until is not None:
            place.hold_until = max(place.hold_until, now)
        place.question, place.quiet_until = None, 0.0
        place.repeats = place.former_seq = place.heard = place.before = 0
        place.last = None
        place.is_restored = place.has_connected = True
        place.deadline = None if place.is_away else now + MAX_INTERVAL_S
        place.ends_at = now + SESSION_S if place.is_away else None


def _passes(sent: Sent, other: Sent) -> bool:
    is_older = sent.is_late and sent.number < other.number
    return other.priority < sent.priority or (other.priority == sent.priority and is_older)
