"""Subjects, sessions, topics, histories, work and restarts, in any order.

After each step, the server and its store have what the model says.
"""

import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from holdfast.bayeux.session import Session
from holdfast.bayeux.sessions.restoring import restore, restore_without_session
from holdfast.delivery.letters.dead import DeadLetter
from holdfast.delivery.ports.journal_port import DeliveryJournal
from holdfast.delivery.ports.store_port import StorePort
from holdfast.delivery.topics.configured import TopicRecord
from holdfast.settings import ChannelSettings
from tests.unit.bayeux.broker_model import (
    DEAD_MESSAGE,
    DENIED,
    HOLDBACK,
    UNREACHED,
    Config,
    Destinations,
    Model,
    Unaccepted,
)
from tests.unit.bayeux.broker_queues import (
    CHANNELS,
    DELAY_S,
    DEPTH,
    JOBS,
    MADE,
    MOST_SHARED,
    PLAIN,
    RULED,
    Copy,
    Queue,
    Sent,
)
from tests.unit.bayeux.harness import Client, Json, Server, server_of
from tests.unit.bayeux.slow_store import number_in
from tests.unit.delivery.fake_keeper import Found
from tests.unit.extensions.delivering import connect, no

# Longer than a session waits for its client.
LONG_S = 1001.0
DELAY = int(DELAY_S * 1000)
OPTIONS: dict[str, Any] = {
    "max_interval": int(LONG_S * 1000) - 1000,
    "max_subject_queue": MOST_SHARED,
    "max_work_queue": MOST_SHARED,
    # It is not in the model.
    "channels": {
        RULED: ChannelSettings(topic=True, destroy_delay=DELAY, history=DEPTH),
        JOBS: ChannelSettings(topic=True, destroy_delay=DELAY, work_queue=True),
    },
}
LIFE_S = 1.5


class Loud(logging.Logger):
    """What is only logged in production is an error here."""

    def exception(self, *args: Any, **kwargs: Any) -> None:
        raise


class Shelf(Protocol):
    """The store, as a test controls it."""

    @property
    def keeper(self) -> StorePort: ...

    @property
    def journal(self) -> DeliveryJournal: ...

    def ends(self) -> Counter[str] | None:
        """How many copies ended in each way, by the journal, if there is one."""
        ...

    def reopen(self) -> None:
        """Another server takes the place of one that was killed."""
        ...

    def topic_records(self) -> Mapping[str, TopicRecord]: ...

    def load(self, without_session: Any) -> Iterable[Found]: ...

    def references(self) -> dict[int, set[str]]:
        """The queues and histories that have each message, which is stored once."""
        ...

    def session_keys(self) -> set[str]: ...

    def dead(self) -> Sequence[DeadLetter]: ...


class Role(NamedTuple):
    """A kind of client."""

    name: str | None
    room: int
    takes_addressed: bool
    patterns: Sequence[str]


OF_TOPICS = (RULED, MADE, PLAIN, "/t/*", "/u/*")
# A role with little room takes one kind of message only, or chance decides which it gets.
ROLES = (
    Role("ann/1", 9, True, (*OF_TOPICS, JOBS, "/jobs/*")),
    Role("joe/1", 2, True, OF_TOPICS),
    Role("joe/2", 2, False, (JOBS, "/jobs/*")),
    Role("joe", 9, True, (*OF_TOPICS, JOBS)),
    Role(None, 2, True, (JOBS, "/jobs/*")),
    Role(None, 4, True, OF_TOPICS),
)
NAMES = ("ann/1", "joe/1", "joe/2", "ann", "joe", "joe")
roles = st.sampled_from(range(len(ROLES)))
picks = st.integers(0, 20)


class Person:
    """A client and its queue."""

    def __init__(self, client: Client, queue: Queue) -> None:
        self.client = client
        self.queue = queue
        self.batch = 0
        self.events: list[Json] = []


class BrokerRules(RuleBasedStateMachine):
    """Each rule does the same to the server and to the model."""

    server: Server
    model: Model

    def open_shelf(self) -> Shelf:
        raise NotImplementedError

    @initialize()
    def open(self) -> None:
        self.shelf = self.open_shelf()
        self.server = self.new_server(None)
        self.model = Model(self.server.now)
        self.model.holders = self.holders
        self.publisher = self.server.client()
        self.people: dict[int, Person] = {}
        self.number = 0
        self.loaded = 0
        # What the journal has of servers that were replaced.
        self.ended = Counter[str]()

    def new_server(self, after: Server | None) -> Server:
        server = server_of(
            keeper=self.shelf.keeper, journal=self.shelf.journal, after=after, **OPTIONS
        )
        server.bayeux.state.log = Loud("loud")
        return server

    def end_turn(self) -> None:
        """What follows from a step happens in the server and in the model."""
        self.server.turn()
        self.model.follow()
        # What returned may have expired meanwhile.
        self.server.bayeux.tick(self.server.now)
        self.server.turn()
        self.model.expire()
        self.model.follow()

    # What happens

    @rule(number=roles, pattern=picks, newest=st.sampled_from([0, 1, 9]))
    def arrive(self, number: int, pattern: int, newest: int) -> None:
        """A client starts a session, takes one over, or subscribes to another pattern."""
        role = ROLES[number]
        person = self.people.get(number)
        is_new = person is None or person.queue.is_away
        if is_new or (role.name is not None and "/" in role.name and newest == 0):
            self.shake_hands(number, role)
        self.subscribe(self.people[number], role.patterns[pattern % len(role.patterns)], newest)
        self.fetch(self.people[number])

    def shake_hands(self, number: int, role: Role) -> None:
        client = self.server.guest()
        terms: Json = {
            "ptp": role.takes_addressed,
            "queue": {"maxEntries": role.room},
            "responseTimeout": 0,
        }
        if role.name is not None:
            terms["session"] = role.name
        asked = client.handshake(ext={"ack": True, "delivery": terms})
        assert asked.elements[0]["successful"], asked.elements
        is_named = "/" in (role.name or "")
        queue = Queue(client.session.key, role.room, is_named, is_named, role.takes_addressed)
        self.model.handshake(queue)
        self.people[number] = Person(client, self.model.sessions[queue.key])
        self.end_turn()

    def subscribe(self, person: Person, pattern: str, newest: int) -> None:
        # The model has no events of erasures.
        delivery: Json = {"notify": False}
        if newest:
            delivery["history"] = {"numEntries": newest}
        message = {"channel": "/meta/subscribe", "subscription": pattern}
        asked = person.client.send({**message, "ext": {"delivery": delivery}})
        self.model.subscribe(person.queue, pattern, newest)
        self.end_turn()
        assert asked.replies[-1]["successful"], asked.replies

    def fetch(self, person: Person, *verdicts: Json, acks: bool = True) -> None:
        """It acks and refuses what it has, and gets what waits."""
        batch = person.batch if acks else 0
        asked = connect(person.client, *verdicts, ack=batch)
        self.server.turn()
        queue = person.queue
        if queue.key not in self.model.sessions:
            assert not asked.replies[-1]["successful"]
            person.events = []
        else:
            assert asked.replies[-1]["successful"], asked.replies
            self.model.hear(queue, batch)
            person.batch = asked.replies[-1]["ext"]["ack"]
            person.events = asked.events
            # With a refusal, the reply may leave before the next messages can be handed over.
            self.model.hand_over(queue, asked.data, person.batch, may_be_early=bool(verdicts))
        self.end_turn()

    @precondition(lambda self: self.people)
    @rule(who=picks, acks=st.sampled_from([True, True, True, False]))
    def connect(self, who: int, acks: bool) -> None:
        person = self.present(who)
        if person is not None:
            self.fetch(person, acks=acks)

    def present(self, who: int) -> Person | None:
        """One of the clients that are there."""
        here = [each for each in self.people.values() if not each.queue.is_away]
        return here[who % len(here)] if here else None

    @precondition(lambda self: any(each.events for each in self.people.values()))
    @rule(
        who=picks,
        which=picks,
        code=st.sampled_from(
            [DEAD_MESSAGE, "user.update.error", "user.update.error", HOLDBACK, DENIED]
        ),
    )
    def refuse(self, who: int, which: int, code: str) -> None:
        busy = [each for each in self.people.values() if each.events and not each.queue.is_away]
        if not busy:
            return
        person = busy[who % len(busy)]
        event = person.events[which % len(person.events)]
        copy = self.handed_copy(person.queue, event)
        if copy is not None:
            self.model.refuse(person.queue, copy, code)
        self.fetch(person, no(event, code))
        self.forget_ended()

    @precondition(lambda self: self.hurried())
    @rule(who=picks, which=picks)
    def give_up(self, who: int, which: int) -> None:
        """A client without retries says that it cannot be reached: its session ends."""
        hurried = self.hurried()
        person = hurried[who % len(hurried)]
        event = person.events[which % len(person.events)]
        copy = self.handed_copy(person.queue, event)
        if copy is not None:
            self.model.refuse(person.queue, copy, UNREACHED)
        self.fetch(person, no(event, UNREACHED))
        self.forget_ended()

    def hurried(self) -> Sequence[Person]:
        """Clients that were handed something, and whose sessions end by such a failure."""
        return [
            each
            for each in self.people.values()
            if each.events and not (each.queue.is_named or each.queue.is_held)
        ]

    def handed_copy(self, queue: Queue, event: Json) -> Copy | None:
        """The copy that the client was handed, unless it has left the queue meanwhile."""
        for copy in queue.copies:
            if copy.sent.number == event["data"] and copy.batch:
                return copy
        return None

    def forget_ended(self) -> None:
        for number, person in [*self.people.items()]:
            if person.queue.key not in self.model.sessions:
                del self.people[number]

    @rule(
        channel=st.sampled_from([RULED, RULED, MADE, PLAIN, JOBS, JOBS, JOBS]),
        priority=st.sampled_from([5, 5, 7]),
        persistent=st.sampled_from([None, None, True, False]),
        life=st.sampled_from([None, None, None, "history", "everywhere", "volatile"]),
        depth=st.sampled_from([None, None, 0, 1, 3]),
        delay_s=st.sampled_from([None, 0.0, DELAY_S, -0.001]),
        is_administrative=st.sampled_from([False, False, False, True]),
    )
    def publish(
        self,
        channel: str,
        priority: int,
        persistent: bool | None,
        life: str | None,
        depth: int | None,
        delay_s: float | None,
        is_administrative: bool,
    ) -> None:
        config = None
        if channel == MADE or (channel == RULED and is_administrative):
            config = Config(delay_s, depth, is_administrative)
        self.send(channel, priority, persistent, None if channel == JOBS else life, config=config)

    @rule(
        names=st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True),
        is_forced=st.booleans(),
        channel=st.sampled_from([PLAIN, PLAIN, RULED, MADE]),
        priority=st.sampled_from([5, 5, 7]),
        persistent=st.sampled_from([None, None, None, False]),
        life=st.sampled_from([None, None, None, "everywhere"]),
        is_subscribable=st.booleans(),
    )
    def write(
        self,
        names: Sequence[str],
        is_forced: bool,
        channel: str,
        priority: int,
        persistent: bool | None,
        life: str | None,
        is_subscribable: bool,
    ) -> None:
        """To subjects and sessions, and perhaps to subscribers too."""
        self.send(
            channel,
            priority,
            persistent,
            life,
            destinations=dict.fromkeys(names, is_forced),
            is_subscribable=is_subscribable,
        )

    def send(
        self,
        channel: str,
        priority: int,
        persistent: bool | None,
        life: str | None,
        *,
        config: Config | None = None,
        destinations: Destinations | None = None,
        is_subscribable: bool = True,
    ) -> None:
        self.number += 1
        sent = Sent(self.number, channel, priority, is_volatile=life == "volatile")
        qos: Json = {"priority": priority, "persistent": persistent}
        if life is not None:
            life_s = 0.0 if sent.is_volatile else LIFE_S
            qos["expiration"] = {"lifeTime": int(life_s * 1000)}
            if not sent.is_volatile:
                sent.ends = self.server.now + life_s
            if life == "everywhere":
                qos["expiration"]["forceDestroy"] = True
                sent.expires = sent.ends
        if config is not None:
            qos |= _asked(config)
        if destinations is not None:
            qos["destinations"] = [
                {"name": name, "forceQueuing": is_forced}
                for name, is_forced in destinations.items()
            ]
            qos["subscribable"] = is_subscribable
        asked = self.publisher.publish(channel, self.number, ext={"delivery": qos})
        try:
            outcomes = self.model.publish(
                sent,
                persistent=persistent,
                config=config,
                destinations=destinations,
                is_subscribable=is_subscribable,
            )
            error = ""
        except Unaccepted as unaccepted:
            outcomes, error = [], unaccepted.code
        self.end_turn()
        assert asked.reply.get("error", "")[:3] == error, asked.reply
        if error:
            return
        said = asked.reply.get("ext", {}).get("delivery", {}).get("destinations", [])
        assert [each["state"] for each in said] == outcomes

    @precondition(lambda self: self.people)
    @rule(who=picks, how=st.sampled_from(["leave", "end", "end", "discard", "unsubscribe"]))
    def go(self, who: int, how: str) -> None:
        person = self.present(who)
        if person is None:
            return
        queue = person.queue
        if how == "unsubscribe":
            self.unsubscribe(person)
            return
        delivery: Json = {}
        if how != "leave":
            delivery = {"end": True, "discard": how == "discard"}
        ext = {"delivery": delivery} if queue.is_named else {}
        asked = person.client.send({"channel": "/meta/disconnect", "ext": ext})
        if queue.is_named and how == "leave":
            self.model.leave(queue)
        elif queue.is_named and how == "end":
            self.model.end_with_letters(queue, "communication.noConnection.dead")
        else:
            self.model.end_silently(queue)
        self.end_turn()
        assert asked.replies[-1]["successful"]
        person.events = []
        self.forget_ended()

    def unsubscribe(self, person: Person) -> None:
        for pattern in sorted(person.queue.subscriptions)[:1]:
            person.client.unsubscribe(pattern)
            self.model.unsubscribe(person.queue, pattern)
            self.end_turn()

    @precondition(lambda self: self.people)
    @rule(who=picks, what=st.sampled_from(["hold", "resume", "resume", "clear"]))
    def operate(self, who: int, what: str) -> None:
        queues = [*self.model.sessions.values()]
        queue = queues[who % len(queues)]
        life, session = self.server.bayeux.life, self.session(queue)
        if what == "hold":
            life.hold_back(session, "lunch", who="ops", now=self.server.now)
            self.model.hold(queue)
        elif what == "clear":
            life.clear(session)
            self.model.clear(queue)
        elif queue.is_named or not queue.is_lost:
            life.resume(session, self.server.now)
            queue.is_held = False
        self.end_turn()

    @rule(channel=st.sampled_from(CHANNELS), how=st.sampled_from(["soft", "forced", "history"]))
    def erase(self, channel: str, how: str) -> None:
        topic = self.server.bayeux.state.topics.get(channel)
        if how == "history":
            self.server.bayeux.state.hub.histories.erase(channel)
            self.model.empty(channel)
        elif topic is not None:
            is_forced = how == "forced"
            self.server.bayeux.life.topics.erase(topic, is_forced=is_forced, now=self.server.now)
            self.model.erase(channel, is_forced=is_forced)
        self.end_turn()

    @rule(seconds=st.sampled_from([1.0, 1.0, 3.0, LONG_S]))
    def wait(self, seconds: float) -> None:
        """Lifetimes, destroy delays and session timeouts end."""
        self.server.now = round(self.server.now + seconds, 1)
        self.model.now = self.server.now
        self.let_time_pass()
        if seconds == LONG_S:
            self.model.lose_all()
            self.forget_ended()
            self.publisher = self.server.client()
        self.let_time_pass()

    def let_time_pass(self) -> None:
        """What is due now happens."""
        self.server.bayeux.tick(self.server.now)
        self.server.turn()
        self.model.expire()
        self.model.follow()

    @rule(is_clean=st.booleans())
    def restart(self, is_clean: bool) -> None:
        """Another server takes the place of this one, which is stopped or killed."""
        if is_clean:
            self.server.stop()
            self.server.turn()
        self.shelf.reopen()
        self.ended = self.shelf.ends() or self.ended
        server = self.new_server(self.server)
        server.bayeux.life.topics.expect(dict(self.shelf.topic_records()))
        for record, entries in self.shelf.load(
            partial(restore_without_session, server.bayeux.life)
        ):
            restore(server.bayeux.life, record, entries, server.now)
        server.bayeux.life.topics.restore()
        self.server = server
        self.publisher = server.client()
        self.model.restart()
        self.loaded = sum(len(queue.copies) for queue in self.model.queues)
        self.model.expire()
        self.forget_ended()
        for person in self.people.values():
            client = Client(server, browser=person.client.browser)
            client.client_id = person.client.client_id
            person.client = client
        self.end_turn()

    # What must hold

    @property
    def sessions(self) -> dict[str, Session]:
        state = self.server.bayeux.state
        everybody = (*state.sessions, *state.waiting_places.queues())
        publisher = self.publisher.client_id
        return {each.key: each for each in everybody if each.client_id != publisher}

    def session(self, queue: Queue) -> Session:
        return self.sessions[queue.key]

    def holders(self, number: int) -> Sequence[str]:
        return [key for key, each in self.sessions.items() if number in _numbers(each)]

    @invariant()
    def agree(self) -> None:
        self.everything_is_where_it_must_be()
        self.topics_and_histories_are_as_they_must_be()
        self.everything_is_accounted_for()
        self.letters_are_of_what_died()
        self.the_store_has_what_must_be_kept_and_nothing_else()

    def everything_is_where_it_must_be(self) -> None:
        sessions = self.sessions
        assert {*sessions} == {queue.key for queue in self.model.queues}
        for queue in self.model.queues:
            session = sessions[queue.key]
            has = sorted(copy.sent.number for copy in queue.copies)
            assert sorted(_numbers(session)) == has, queue.key
            in_flight = [each.message for each in session.queue.in_flight().values()]
            assert sorted(number_in(each.wire) for each in in_flight) == sorted(
                copy.sent.number for copy in queue.copies if copy.is_in_flight
            ), queue.key
            assert session.is_durable is queue.is_durable, queue.key
            is_held = session.dispatcher is not None and not session.dispatcher.is_active
            assert is_held is queue.is_held, queue.key

    def topics_and_histories_are_as_they_must_be(self) -> None:
        state = self.server.bayeux.state
        kept = {
            name: [number_in(each.wire) for each in state.hub.histories.get(name) or ()]
            for name in CHANNELS
        }
        assert kept == {
            name: [sent.number for sent in each] for name, each in self.model.histories.items()
        }
        found = {topic.name: topic.state for topic in state.topics}
        assert found == {name: topic.state for name, topic in self.model.topics.items()}

    def everything_is_accounted_for(self) -> None:
        assert self.server.balances()
        counters = self.server.bayeux.state.counters
        left = Counter({"acked": counters.acked, "dead": counters.dead})
        left["expired"] = counters.expired
        left.update({reason.value: count for reason, count in counters.discarded.items()})
        assert +left == +self.model.books
        ends = self.shelf.ends()
        assert ends is None or ends - self.ended == +self.model.books
        assert counters.restored == self.loaded

    def letters_are_of_what_died(self) -> None:
        letters = [(each.key, number_in(each.wire), each.code) for each in self.shelf.dead()]
        assert Counter(letters) == Counter(self.model.letters)

    def the_store_has_what_must_be_kept_and_nothing_else(self) -> None:
        assert self.shelf.references() == self.model.references()
        durable = {key for key, each in self.model.sessions.items() if each.is_durable}
        assert self.shelf.session_keys() == durable


def _numbers(session: Session) -> list[int]:
    return [number_in(message.wire) for message in session.queue.messages()]


def _asked(config: Config) -> Json:
    topic: Json = {}
    if config.delay_s is not None:
        topic["destroyDelay"] = int(config.delay_s * 1000)
    if config.depth is not None:
        topic["history"] = {"maxEntries": config.depth}
    return {"topic": topic, "administrative": config.is_administrative}
