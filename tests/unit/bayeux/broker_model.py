"""A naive broker: says where each message must be after each step.

It is as simple as possible, and slow. What the rules leave open it takes from the server and
checks: which of several equal receivers gets work, and how many messages one reply carries.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from holdfast.delivery.basics.steps import Reason
from holdfast.delivery.topics.states import TopicState
from tests.unit.bayeux.broker_queues import (
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
    Queue,
    Sent,
    Topic,
)

DELIVERY_ENDED = "communication.noConnection.dead"
LOST = "communication.noConnection"
FULL = "resource.overflow.queue.entries"
HOLDBACK = "user.update.holdback"
DEAD_MESSAGE = "user.update.deadMessage"
DENIED = "user.security.authentication.accessDenied"
# A session without retries ends by it.
UNREACHED = "communication.printer"
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
        self.sessions: dict[str, Queue] = {}
        self.shared: dict[str, Queue] = {}
        self.histories: dict[str, list[Sent]] = {name: [] for name in CHANNELS}
        self.topics: dict[str, Topic] = {}
        # How entries left since the server began, and all letters: receiver, message and code.
        self.books: Counter[str] = Counter()
        self.letters: list[tuple[str, int, str]] = []
        # The sessions that have a message in the server; asked only what the model leaves open.
        self.holders: Callable[[int], Sequence[str]]

    @property
    def queues(self) -> Sequence[Queue]:
        return [*self.sessions.values(), *self.shared.values()]

    # Ways out

    def settle(self, queue: Queue, copies: Sequence[Copy], how: str) -> None:
        self.books[how] += len(copies)
        queue.copies = [copy for copy in queue.copies if copy not in copies]

    def discard(self, queue: Queue, copies: Sequence[Copy], reason: Reason) -> None:
        self.settle(queue, copies, reason.value)

    def bury(self, queue: Queue, copies: Sequence[Copy], code: str) -> None:
        self.settle(queue, copies, "dead")
        self.letters += [(queue.key, copy.sent.number, code) for copy in copies]

    def expire(self) -> None:
        """Waiting and kept messages leave when their lifetime ends."""
        for queue in self.queues:
            over = [
                each for each in queue.copies if self.has_expired(each) and not each.is_in_flight
            ]
            self.settle(queue, over, "expired")
        for kept in self.histories.values():
            kept[:] = [sent for sent in kept if sent.ends is None or sent.ends > self.now]

    def has_expired(self, copy: Copy) -> bool:
        return copy.sent.expires is not None and copy.sent.expires <= self.now

    # Ways in

    def enter(self, queue: Queue, sent: Sent) -> None:
        """A message arrives, unless there is no room for it."""
        copy = Copy(sent, sent.is_durable and queue.is_durable)
        queue.copies.append(copy)
        if len(queue.copies) > queue.room:
            if self.has_expired(copy):
                self.settle(queue, [copy], "expired")
            else:
                self.bury(queue, [copy], FULL)

    def move(self, queue: Queue, copy: Copy, *targets: Queue) -> None:
        """A copy leaves a queue for others, which may have the message already."""
        queue.copies.remove(copy)
        sent, was_handed = copy.sent, copy.was_handed
        for target in targets:
            target.is_durable |= sent.is_durable
            if target.has(sent):
                [known] = [each for each in target.copies if each.sent is sent]
                known.was_handed |= was_handed
            else:
                target.copies.append(Copy(sent, sent.is_durable, was_handed=was_handed))

    def shared_queue(self, name: str) -> Queue:
        return self.shared.setdefault(name, Queue(f"{name}/0"))

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
        receivers: list[Queue] = []
        outcomes: list[str] = []
        if destinations:
            receivers, outcomes = self.address(sent, destinations, persistent)
        if sent.is_work:
            shared = self.shared_queue(WORK)
            if len(shared.copies) >= MOST_SHARED:
                raise Unaccepted("507")
            receivers.append(shared)
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
    ) -> tuple[list[Queue], list[str]]:
        """Find who gets what is addressed to subjects and sessions. Raises `Unaccepted`."""
        receivers, outcomes, errors = list[Queue](), list[str](), list[str]()
        passing: list[Queue] = []
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
        queues = zip(destinations, outcomes, strict=True)
        sent.addressed = [name for name, outcome in queues if outcome != "ERROR"]
        for each in passing if persistent is not False else ():
            each.is_durable = True
        return receivers, outcomes

    def session_named(self, key: str) -> Queue:
        found = self.sessions.get(key)
        if found is None:
            raise Unaccepted("404")
        if not found.takes_addressed:
            raise Unaccepted("403")
        if not found.has_room:
            raise Unaccepted("507")
        return found

    def takers(self, subject: str) -> list[Queue]:
        here = self.sessions.values()
        return [each for each in here if each.subject == subject and each.takes_addressed]

    def takers_now(self, subject: str, *, is_forced: bool) -> list[Queue]:
        """The sessions that get it at once: none while an earlier one waits, or without room."""
        takers = self.takers(subject)
        if not takers and not is_forced:
            is_there = any(each.subject == subject for each in self.sessions.values())
            raise Unaccepted("403" if is_there else "404")
        has_room = any(each.has_room for each in takers)
        return takers if has_room and subject not in self.shared else []

    def room_for(self, subject: str) -> Queue:
        shared = self.shared_queue(subject)
        if len(shared.copies) >= MOST_SHARED:
            raise Unaccepted("507")
        return shared

    # Returns, and what follows

    def requeue(self, queue: Queue, copies: Sequence[Copy]) -> None:
        """These return to the work queue, or to the subject."""
        for copy in copies:
            self.move(queue, copy, self.shared_queue(WORK if copy.sent.is_work else queue.subject))

    def requeue_new(self, queue: Queue) -> None:
        """Return the work that waits for a session which takes none now."""
        if not (queue.is_live and queue.hears(JOBS)):
            work = [copy for copy in queue.copies if copy.sent.is_work and not copy.is_in_flight]
            self.requeue(queue, work)

    def assign(self) -> None:
        """What waits outside of sessions moves to those that take it."""
        for subject in SUBJECTS:
            if subject in self.shared:
                self.pass_to_subject(self.shared[subject], self.takers(subject))
        if WORK in self.shared:
            self.share_out(self.shared[WORK])
        self.shared = {name: each for name, each in self.shared.items() if each.copies}

    def pass_to_subject(self, shared: Queue, takers: Sequence[Queue]) -> None:
        """To every session that has room; none overtakes one that waits for room."""
        for copy in shared.in_order() if any(each.has_room for each in takers) else ():
            has = [each for each in takers if each.has(copy.sent)]
            new = [each for each in takers if each not in has and each.has_room]
            if not (has or new):
                return
            self.move(shared, copy, *new)

    def share_out(self, shared: Queue) -> None:
        """To one live receiver each: one of those with the fewest entries."""
        takers = [each for each in self.sessions.values() if each.is_live and each.hears(JOBS)]
        for copy in shared.in_order():
            free = [each for each in takers if each.has_room]
            sent = copy.sent
            if not free:
                return
            if sent.refusers and all(each.key in sent.refusers for each in takers):
                self.bury(shared, [copy], sent.code)
                continue
            free = [each for each in free if each.key not in sent.refusers]
            if free:
                least = min(len(each.copies) for each in free)
                first = [each for each in free if len(each.copies) == least]
                [holder] = self.holders(sent.number)
                self.move(shared, copy, next(each for each in first if each.key == holder))

    def follow(self) -> None:
        """What follows from each step: moves between queues, and ends of topics."""
        self.assign()
        for name, topic in [*self.topics.items()]:
            is_subscribed = any(name in each.subscriptions for each in self.sessions.values())
            copies = [copy for queue in self.queues for copy in queue.copies]
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

    def handshake(self, queue: Queue) -> None:
        """A client starts a session, or takes it over."""
        known = self.sessions.setdefault(queue.key, queue)
        for copy in known.copies:
            copy.mark_returned()
        known.is_away = known.is_lost = False
        known.has_contact = known is not queue

    def subscribe(self, queue: Queue, pattern: str, newest: int) -> list[Sent]:
        """Return what the channel keeps and the queue has room for."""
        channel = PATTERNS.get(pattern, pattern)
        queue.subscriptions.add(pattern)
        if pattern in (RULED, JOBS):
            self.topics.setdefault(pattern, by_rule(pattern))
        kept = [] if not newest else self.histories[channel][-newest:]
        kept = [sent for sent in kept if not queue.has(sent)]
        room = (queue.room - len(queue.copies)) // 2
        coming = kept[-room:] if room > 0 else []
        for sent in coming:
            is_kept = sent.is_durable and queue.is_durable
            queue.copies.append(Copy(sent, is_kept, is_initial=True))
        return coming

    def unsubscribe(self, queue: Queue, pattern: str) -> None:
        queue.subscriptions.discard(pattern)
        self.requeue_new(queue)

    def hear(self, queue: Queue, batch: int) -> None:
        """The client is there, and acks this batch."""
        done = [copy for copy in queue.copies if 0 < copy.batch <= batch]
        self.settle(queue, done, "acked")
        queue.has_contact, queue.is_lost = True, False

    def refuse(self, queue: Queue, copy: Copy, code: str) -> None:
        """The client refuses one of the messages that it was handed."""
        if code == HOLDBACK:
            at = queue.copies.index(copy)
            for each in queue.copies[at:]:
                each.mark_returned()
            self.hold(queue)
            return
        if copy.sent.is_work:
            self.requeue(queue, [copy])
            if code == DEAD_MESSAGE:
                # It dies in its own queue.
                shared = self.shared_queue(WORK)
                its = [each for each in shared.copies if each.sent is copy.sent]
                self.bury(shared, its, code)
            else:
                copy.sent.refusers.append(queue.key)
                copy.sent.code = code
        elif code == UNREACHED and queue.is_only_for_its_subject(copy):
            self.requeue(queue, [copy])
        else:
            self.bury(queue, [copy], code)
        if code in (DENIED, UNREACHED):
            self.end_with_letters(queue, code)

    def hand_over(
        self, queue: Queue, told: Sequence[int], batch: int, *, may_be_early: bool
    ) -> None:
        """Check what a reply carried: the front of the queue, redeliveries first."""
        by_number = {copy.sent.number: copy for copy in queue.copies}
        assert len(set(told)) == len(told)
        going = [by_number[number] for number in told]
        # What has returned since the last tick may have expired.
        over = [each for each in queue.copies if self.has_expired(each) and each not in going]
        self.settle(queue, over, "expired")
        staying = [copy for copy in queue.copies if copy not in going]
        if queue.is_held:
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
            copy.mark_returned()
        for copy in going:
            copy.is_in_flight = copy.was_handed = True
            copy.batch = batch
        queue.copies = [*going, *staying]

    def hold(self, queue: Queue) -> None:
        queue.is_held = True
        self.requeue_new(queue)

    def leave(self, queue: Queue) -> None:
        """The client of a named session leaves."""
        for copy in queue.copies:
            copy.mark_returned()
        queue.is_away, queue.has_contact = True, False
        self.requeue_new(queue)

    def return_what_others_may_have(self, queue: Queue) -> None:
        self.requeue(
            queue,
            [
                copy
                for copy in queue.copies
                if copy.sent.is_work or queue.is_only_for_its_subject(copy)
            ],
        )

    def end_with_letters(self, queue: Queue, code: str) -> None:
        self.return_what_others_may_have(queue)
        self.bury(queue, queue.copies, code)
        del self.sessions[queue.key]

    def end_silently(self, queue: Queue) -> None:
        self.return_what_others_may_have(queue)
        self.discard(queue, queue.copies, Reason.SESSION_ENDED)
        del self.sessions[queue.key]

    def lose_all(self) -> None:
        """No client comes back in time."""
        for queue in [*self.sessions.values()]:
            if queue.is_away or queue.is_lost:
                continue
            queue.is_lost, queue.has_contact = True, False
            for copy in queue.copies:
                # An ack may still arrive.
                copy.is_in_flight = False
            if queue.is_named or queue.is_held:
                self.requeue_new(queue)
            else:
                self.end_with_letters(queue, LOST)

    def clear(self, queue: Queue) -> None:
        self.discard(queue, queue.copies, Reason.CLEARED)

    # Topics

    def erase(self, channel: str, *, is_forced: bool) -> None:
        topic = self.topics.get(channel)
        if topic is None:
            return
        for queue in self.sessions.values():
            if channel in queue.subscriptions:
                self.unsubscribe(queue, channel)
        self.histories[channel].clear()
        topic.is_configured = False
        for queue in self.queues if is_forced else ():
            its = [
                copy
                for copy in queue.copies
                if copy.sent.channel == channel and copy.sent.is_of_topic
            ]
            self.discard(queue, its, Reason.ERASED)

    def empty(self, channel: str) -> None:
        self.histories[channel].clear()

    # Ends of processes

    def restart(self) -> None:
        """The server is killed: only what the store has remains."""
        self.books.clear()
        self.sessions = {key: each for key, each in self.sessions.items() if each.is_durable}
        for queue in self.queues:
            queue.copies = [copy for copy in queue.copies if copy.is_kept]
            queue.has_contact = queue.is_lost = False
            for copy in queue.copies:
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
        for queue in self.queues:
            for copy in queue.copies:
                if copy.is_kept:
                    found.setdefault(copy.sent.number, set()).add(queue.key)
        for channel, kept in self.histories.items():
            for sent in kept:
                if sent.is_durable:
                    found.setdefault(sent.number, set()).add(channel)
        return found


def by_rule(channel: str) -> Topic:
    """A topic that no publish has configured."""
    return Topic(ORDINARY_DELAY_S if channel == MADE else DELAY_S)
