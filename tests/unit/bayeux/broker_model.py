"""A naive broker: says where each message must be after each step.

It is as simple as possible, and slow. What the rules leave open it takes from the server and
checks: which of several equal receivers gets work, and how many messages one reply carries.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from holdfast.delivery.counters import Reason
from holdfast.delivery.topic_states import TopicState
from tests.unit.bayeux.broker_places import (
    CHANNELS,
    DELAY_S,
    DEPTH,
    JOBS,
    MADE,
    MOST_SHARED,
    ORDINARY_DELAY_S,
    PATTERNS,
    RULED,
    SUBJECTS,
    Copy,
    Place,
    Sent,
    Topic,
)

DELIVERY_ENDED = "communication.noConnection.dead"
LOST = "communication.noConnection"
FULL = "resource.overflow.queue.entries"
HOLDBACK = "user.update.holdback"
DEAD_MESSAGE = "user.update.deadMessage"
DENIED = "user.security.authentication.accessDenied"
WORK = f"work:{JOBS}"


class Unaccepted(Exception):
    """The publish has no effect; its error has this code."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


@dataclass(frozen=True)
class Config:
    """What a publish says about its topic; None leaves it as it is."""

    delay_s: float | None = None
    depth: int | None = None
    is_administrative: bool = False


# Sessions and subjects, each with whether the message may wait for it.
Destinations = Mapping[str, bool]


class Model:
    """All queues, histories and topics, and the books of what has left."""

    def __init__(self, now: float) -> None:
        self.now = now
        self.sessions: dict[str, Place] = {}
        self.shared: dict[str, Place] = {}
        self.histories: dict[str, list[Sent]] = {name: [] for name in CHANNELS}
        self.topics: dict[str, Topic] = {}
        # How entries left since the server began, and all letters: receiver, message and code.
        self.books: Counter[str] = Counter()
        self.letters: list[tuple[str, int, str]] = []
        # The sessions that have a message in the server; asked only what the model leaves open.
        self.holders: Callable[[int], Sequence[str]]

    @property
    def places(self) -> Sequence[Place]:
        return [*self.sessions.values(), *self.shared.values()]

    # Ways out

    def settle(self, place: Place, copies: Sequence[Copy], how: str) -> None:
        self.books[how] += len(copies)
        place.copies = [copy for copy in place.copies if copy not in copies]

    def discard(self, place: Place, copies: Sequence[Copy], reason: Reason) -> None:
        self.settle(place, copies, reason.value)

    def bury(self, place: Place, copies: Sequence[Copy], code: str) -> None:
        self.settle(place, copies, "dead")
        self.letters += [(place.key, copy.sent.number, code) for copy in copies]

    def expire(self) -> None:
        """Waiting and kept messages leave when their lifetime ends."""
        for place in self.places:
            over = [
                each for each in place.copies if self.has_expired(each) and not each.is_in_flight
            ]
            self.settle(place, over, "expired")
        for kept in self.histories.values():
            kept[:] = [sent for sent in kept if sent.ends is None or sent.ends > self.now]

    def has_expired(self, copy: Copy) -> bool:
        return copy.sent.expires is not None and copy.sent.expires <= self.now

    # Ways in

    def enter(self, place: Place, sent: Sent) -> None:
        """A message arrives, unless there is no room for it."""
        copy = Copy(sent, sent.is_durable and place.is_durable)
        place.copies.append(copy)
        if len(place.copies) > place.room:
            if self.has_expired(copy):
                self.settle(place, [copy], "expired")
            else:
                self.bury(place, [copy], FULL)

    def move(self, place: Place, copy: Copy, *targets: Place) -> None:
        """A copy leaves a queue for others, which may have the message already."""
        place.copies.remove(copy)
        sent, was_handed = copy.sent, copy.was_handed
        for target in targets:
            target.is_durable |= sent.is_durable
            if target.has(sent):
                [known] = [each for each in target.copies if each.sent is sent]
                known.was_handed |= was_handed
            else:
                target.copies.append(Copy(sent, sent.is_durable, was_handed=was_handed))

    def home(self, name: str) -> Place:
        return self.shared.setdefault(name, Place(f"{name}/0"))

    # Publishes

    def publish(
        self,
        sent: Sent,
        *,
        persistent: bool | None,
        config: Config | None = None,
        destinations: Destinations | None = None,
        is_subscribable: bool = True,
    ) -> list[str]:
        """Return what becomes of the message at each destination. Raises `Unaccepted`."""
        channel = sent.channel
        if config is not None and config.is_administrative:
            self.configure(channel, config)
            self.shorten(channel, self.depth_with(channel, None))
            return []
        receivers: list[Place] = []
        outcomes: list[str] = []
        if destinations:
            receivers, outcomes = self.address(sent, destinations, persistent)
        if sent.is_work:
            home = self.home(WORK)
            if len(home.copies) >= MOST_SHARED:
                raise Unaccepted("507")
            receivers.append(home)
        elif is_subscribable:
            receivers += [each for each in self.sessions.values() if each.hears(channel)]
        receivers = list(dict.fromkeys(receivers))
        depth = self.depth_with(channel, config)
        if depth == 0:
            self.histories[channel].clear()
        is_kept_for_later = bool(depth) and is_subscribable
        has_durable = persistent is not False and any(each.is_durable for each in receivers)
        sent.is_durable = has_durable or (is_kept_for_later and persistent is True)
        if channel in (RULED, JOBS, *self.topics) or config is not None:
            sent.is_of_topic = True
            self.touch(channel, config or Config())
        for each in receivers:
            self.enter(each, sent)
        if is_kept_for_later and not sent.is_volatile:
            self.histories[channel].append(sent)
            self.shorten(channel, depth)
        return outcomes

    def shorten(self, channel: str, depth: int | None) -> None:
        kept = self.histories[channel]
        del kept[: max(len(kept) - (depth or 0), 0)]

    def touch(self, channel: str, config: Config) -> None:
        """A message keeps its topic alive; the first one configures it."""
        topic = self.topics.get(channel)
        if topic is None or not topic.is_configured:
            self.configure(channel, config)
        else:
            topic.idle_since = None

    def configure(self, channel: str, config: Config) -> None:
        topic = self.topics.get(channel)
        if topic is None or not topic.is_configured:
            # Nothing remains of an earlier configuration.
            topic = self.topics[channel] = by_rule(channel)
        topic.is_configured, topic.idle_since = True, None
        if config.delay_s is not None:
            topic.delay_s = config.delay_s
        if config.depth is not None:
            topic.depth = config.depth

    def depth_with(self, channel: str, config: Config | None) -> int | None:
        """How much the history will keep; zero if that was configured, None if by rule."""
        topic = self.topics.get(channel)
        depth = None if config is None else config.depth
        if topic is not None and topic.is_configured:
            depth = topic.depth
        if depth is None and channel == RULED:
            return DEPTH
        return depth

    def address(
        self, sent: Sent, destinations: Destinations, persistent: bool | None
    ) -> tuple[list[Place], list[str]]:
        """Find who gets what is addressed to subjects and sessions. Raises `Unaccepted`."""
        receivers, outcomes, errors = list[Place](), list[str](), list[str]()
        passing: list[Place] = []
        for name, is_forced in destinations.items():
            try:
                if "/" in name:
                    receivers.append(self.session_named(name))
                    outcomes.append("OK")
                else:
                    found = self.takers_now(name, is_forced=is_forced)
                    passing += found
                    receivers += found or [self.room_for(name)]
                    outcomes.append("OK" if found else "QUEUED")
            except Unaccepted as error:
                outcomes.append("ERROR")
                errors.append(error.code)
        if errors and len(errors) == len(destinations):
            raise Unaccepted(errors[0])
        places = zip(destinations, outcomes, strict=True)
        sent.addressed = [name for name, outcome in places if outcome != "ERROR"]
        for each in passing if persistent is not False else ():
            each.is_durable = True
        return receivers, outcomes

    def session_named(self, key: str) -> Place:
        found = self.sessions.get(key)
        if found is None:
            raise Unaccepted("404")
        if not found.takes_addressed:
            raise Unaccepted("403")
        if not found.has_room:
            raise Unaccepted("507")
        return found

    def takers(self, subject: str) -> list[Place]:
        here = self.sessions.values()
        return [each for each in here if each.subject == subject and each.takes_addressed]

    def takers_now(self, subject: str, *, is_forced: bool) -> list[Place]:
        """The sessions that get it at once: none while an earlier one waits, or without room."""
        takers = self.takers(subject)
        if not takers and not is_forced:
            is_there = any(each.subject == subject for each in self.sessions.values())
            raise Unaccepted("403" if is_there else "404")
        has_room = any(each.has_room for each in takers)
        return takers if has_room and subject not in self.shared else []

    def room_for(self, subject: str) -> Place:
        home = self.home(subject)
        if len(home.copies) >= MOST_SHARED:
            raise Unaccepted("507")
        return home

    # Returns, and what follows

    def take_back(self, place: Place, copies: Sequence[Copy]) -> None:
        """These return to the work queue, or to the subject."""
        for copy in copies:
            self.move(place, copy, self.home(WORK if copy.sent.is_work else place.subject))

    def relieve(self, place: Place) -> None:
        """Return the work that waits for a session which takes none now."""
        if not (place.is_live and place.hears(JOBS)):
            work = [copy for copy in place.copies if copy.sent.is_work and not copy.is_in_flight]
            self.take_back(place, work)

    def pass_on(self) -> None:
        """What waits outside of sessions moves to those that take it."""
        for subject in SUBJECTS:
            if subject in self.shared:
                self.pass_to_subject(self.shared[subject], self.takers(subject))
        if WORK in self.shared:
            self.share_out(self.shared[WORK])
        self.shared = {name: home for name, home in self.shared.items() if home.copies}

    def pass_to_subject(self, home: Place, takers: Sequence[Place]) -> None:
        """To every session that has room; none overtakes one that waits for room."""
        for copy in home.in_order() if any(each.has_room for each in takers) else ():
            has = [each for each in takers if each.has(copy.sent)]
            new = [each for each in takers if each not in has and each.has_room]
            if not (has or new):
                return
            self.move(home, copy, *new)

    def share_out(self, home: Place) -> None:
        """To one live receiver each: one of those with the fewest entries."""
        takers = [each for each in self.sessions.values() if each.is_live and each.hears(JOBS)]
        for copy in home.in_order():
            free = [each for each in takers if each.has_room]
            sent = copy.sent
            if not free:
                return
            if sent.refusers and all(each.key in sent.refusers for each in takers):
                self.bury(home, [copy], sent.code)
                continue
            free = [each for each in free if each.key not in sent.refusers]
            if free:
                least = min(len(each.copies) for each in free)
                first = [each for each in free if len(each.copies) == least]
                [holder] = self.holders(sent.number)
                self.move(home, copy, next(each for each in first if each.key == holder))

    def follow(self) -> None:
        """What follows from each step: moves between queues, and ends of topics."""
        self.pass_on()
        for name, topic in [*self.topics.items()]:
            is_subscribed = any(name in each.subscriptions for each in self.sessions.values())
            copies = [copy for place in self.places for copy in place.copies]
            is_queued = any(each.sent.channel == name and each.sent.is_of_topic for each in copies)
            if is_queued and is_subscribed:
                topic.is_configured = True
            topic.look(
                has_history=bool(self.histories[name]),
                is_queued=is_queued,
                is_subscribed=is_subscribed,
            )
            if topic.state is not TopicState.UNREFERENCED:
                topic.idle_since = None
            elif topic.idle_since is None:
                topic.idle_since = self.now
            if topic.state is TopicState.DEAD or self.is_over(topic):
                del self.topics[name]

    def is_over(self, topic: Topic) -> bool:
        since = topic.idle_since
        return since is not None and 0 <= topic.delay_s <= self.now - since

    # Sessions

    def handshake(self, place: Place) -> None:
        """A client starts a session, or takes it over."""
        known = self.sessions.setdefault(place.key, place)
        for copy in known.copies:
            copy.give_back()
        known.is_away = known.is_lost = False
        known.has_contact = known is not place

    def subscribe(self, place: Place, pattern: str, newest: int) -> list[Sent]:
        """Return what the channel keeps and the queue has room for."""
        channel = PATTERNS.get(pattern, pattern)
        place.subscriptions.add(pattern)
        if pattern in (RULED, JOBS):
            self.topics.setdefault(pattern, by_rule(pattern))
        kept = [] if not newest else self.histories[channel][-newest:]
        kept = [sent for sent in kept if not place.has(sent)]
        room = (place.room - len(place.copies)) // 2
        coming = kept[-room:] if room > 0 else []
        for sent in coming:
            is_kept = sent.is_durable and place.is_durable
            place.copies.append(Copy(sent, is_kept, is_initial=True))
        return coming

    def unsubscribe(self, place: Place, pattern: str) -> None:
        place.subscriptions.discard(pattern)
        self.relieve(place)

    def hear(self, place: Place, batch: int) -> None:
        """The client is there, and acks this batch."""
        done = [copy for copy in place.copies if 0 < copy.batch <= batch]
        self.settle(place, done, "acked")
        place.has_contact, place.is_lost = True, False

    def refuse(self, place: Place, copy: Copy, code: str) -> None:
        """The client refuses one of the messages that it was handed."""
        if code == HOLDBACK:
            at = place.copies.index(copy)
            for each in place.copies[at:]:
                each.give_back()
            self.hold(place)
            return
        if copy.sent.is_work and code != DEAD_MESSAGE:
            copy.sent.refusers.append(place.key)
            copy.sent.code = code
            self.take_back(place, [copy])
        else:
            self.bury(place, [copy], code)
        if code == DENIED:
            self.end_with_letters(place, code)

    def hand_over(
        self, place: Place, told: Sequence[int], batch: int, *, may_be_early: bool
    ) -> None:
        """Check what a reply carried: the front of the queue, redeliveries first."""
        by_number = {copy.sent.number: copy for copy in place.copies}
        assert len(set(told)) == len(told)
        going = [by_number[number] for number in told]
        # What has returned since the last tick may have expired.
        over = [each for each in place.copies if self.has_expired(each) and each not in going]
        self.settle(place, over, "expired")
        staying = [copy for copy in place.copies if copy not in going]
        if place.is_held:
            assert not going
        else:
            assert going or not staying or may_be_early
        assert all(copy.was_handed for copy in going) or not any(
            copy.was_handed for copy in staying
        )
        new = [copy.sent.priority for copy in going if not copy.was_handed]
        assert new == sorted(new, reverse=True)
        left = [copy.sent.priority for copy in staying if not copy.was_handed]
        assert min(new, default=9) >= max(left, default=0)
        for copy in staying:
            copy.give_back()
        for copy in going:
            copy.is_in_flight = copy.was_handed = True
            copy.batch = batch
        place.copies = [*going, *staying]

    def hold(self, place: Place) -> None:
        place.is_held = True
        self.relieve(place)

    def leave(self, place: Place) -> None:
        """The client of a named session leaves."""
        for copy in place.copies:
            copy.give_back()
        place.is_away, place.has_contact = True, False
        self.relieve(place)

    def return_what_others_may_have(self, place: Place) -> None:
        self.take_back(
            place,
            [
                copy
                for copy in place.copies
                if copy.sent.is_work or place.is_only_for_its_subject(copy)
            ],
        )

    def end_with_letters(self, place: Place, code: str) -> None:
        self.return_what_others_may_have(place)
        self.bury(place, place.copies, code)
        del self.sessions[place.key]

    def end_silently(self, place: Place) -> None:
        self.return_what_others_may_have(place)
        self.discard(place, place.copies, Reason.SESSION_ENDED)
        del self.sessions[place.key]

    def lose_all(self) -> None:
        """No client comes back in time."""
        for place in [*self.sessions.values()]:
            if place.is_away or place.is_lost:
                continue
            place.is_lost, place.has_contact = True, False
            for copy in place.copies:
                # An ack may still arrive.
                copy.is_in_flight = False
            if place.is_named or place.is_held:
                self.relieve(place)
            else:
                self.end_with_letters(place, LOST)

    def clear(self, place: Place) -> None:
        self.discard(place, place.copies, Reason.CLEARED)

    # Topics

    def erase(self, channel: str, *, is_forced: bool) -> None:
        topic = self.topics.get(channel)
        if topic is None:
            return
        for place in self.sessions.values():
            if channel in place.subscriptions:
                self.unsubscribe(place, channel)
        self.histories[channel].clear()
        topic.is_configured = False
        for place in self.places if is_forced else ():
            its = [
                copy
                for copy in place.copies
                if copy.sent.channel == channel and copy.sent.is_of_topic
            ]
            self.discard(place, its, Reason.ERASED)

    def empty(self, channel: str) -> None:
        self.histories[channel].clear()

    # Ends of processes

    def restart(self) -> None:
        """The server is killed: only what the store has remains."""
        self.books.clear()
        self.sessions = {key: each for key, each in self.sessions.items() if each.is_durable}
        for place in self.places:
            place.copies = [copy for copy in place.copies if copy.is_kept]
            place.has_contact = place.is_lost = False
            for copy in place.copies:
                copy.sent.refusers.clear()
                copy.sent.is_of_topic |= copy.sent.channel in self.topics
        for channel, kept in self.histories.items():
            kept[:] = [sent for sent in kept if sent.is_durable]
            topic = self.topics.get(channel)
            if topic is not None:
                topic.idle_since = None
                topic.is_configured |= bool(kept)

    # What the store has

    def references(self) -> dict[int, set[str]]:
        """Where each stored message is: in queues, by their keys, and in histories of channels."""
        found: dict[int, set[str]] = {}
        for place in self.places:
            for copy in place.copies:
                if copy.is_kept:
                    found.setdefault(copy.sent.number, set()).add(place.key)
        for channel, kept in self.histories.items():
            for sent in kept:
                if sent.is_durable:
                    found.setdefault(sent.number, set()).add(channel)
        return found


def by_rule(channel: str) -> Topic:
    """A topic that no publish has configured."""
    return Topic(ORDINARY_DELAY_S if channel == MADE else DELAY_S)
