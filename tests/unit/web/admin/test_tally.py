"""The tally of queues agrees with a naive count of everything in them."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.bayeux.session import Session
from holdfast.delivery.messages.entries import SettledBy
from holdfast.delivery.messages.message import Message
from holdfast.delivery.queues.dispatcher import DispatcherState
from holdfast.delivery.shared_queues.work import is_work
from holdfast.settings import ChannelSettings
from holdfast.web.admin import tally
from holdfast.web.admin.tally import ALL_REPLIES, Largest, QueueTally, Tally
from tests.unit.bayeux.harness import Client, Server, server_of
from tests.unit.bayeux.operated_server import connect, publish, receiver

CHANNELS = ("/a", "/b/1", "/jobs/x", "/jobs/y")
JOBS = {"/jobs/**": ChannelSettings(work_queue=True)}


class Shop:
    """A server with a few receivers, to which random things happen."""

    def __init__(self) -> None:
        self.server = server_of(channels=JOBS, max_interval=10_000)
        self.clients = [receiver(self.server, f"joe/{n}", retries=-1) for n in (1, 2)]
        for client in self.clients:
            client.subscribe("/b/*", "/jobs/*")
        # Only verdicts settle what it has, so its entries come from several hand-overs.
        judge = self.server.connected(ext={"delivery": {"session": "judge/1", "retries": -1}})
        judge.subscribe("/a", "/jobs/*")
        self.clients.append(judge)
        self.server.turn()
        self.publisher = self.server.connected(ext={"delivery": True})

    def do(self, what: str, which: int, number: int) -> None:
        client = self.clients[which % len(self.clients)]
        match what:
            case "publish":
                ext: Any = {"delivery": {"priority": number % 10}} if number % 3 == 0 else {}
                self.publisher.publish(CHANNELS[which % len(CHANNELS)], number, ext=ext)
            case "address":
                ext = {"delivery": {"destinations": [{"name": "eve", "forceQueuing": True}]}}
                self.publisher.publish("/a", number, ext=ext)
            case "connect" if client.session.queue.settling is SettledBy.BATCH:
                connect(client)
            case "connect" | "look":
                acks = client.session.queue.settling is SettledBy.BATCH
                client.connect(advice={"timeout": 0}, ext={"ack": 0} if acks else {})
            case "refuse":
                numbers = [*client.session.queue.in_flight()][: number % 3]
                verdicts = [{"seq": seq, "errorCode": "user.update.error"} for seq in numbers]
                client.connect(advice={"timeout": 0}, ext={"delivery": {"verdicts": verdicts}})
            case "hold":
                life = self.server.bayeux.life
                life.hold_back(client.session, "", who="operator", now=self.server.now)
            case "wait":
                self.server.advance(float(number % 12))
            case _:
                raise AssertionError(what)
        self.server.turn()


def taken(server: Server, most: int = 100) -> Tally:
    state = server.bayeux.state
    found = Tally(state.sessions, state.waiting_places, has_work=True, most=most)
    assert sum(1 for _ in found.steps()) > 0
    return found


def queues(server: Server) -> list[Session]:
    state = server.bayeux.state
    return [*state.sessions, *state.waiting_places.queues()]


def ids(found: Iterable[QueueTally]) -> list[tuple[str, int | None]]:
    return [(each.receiver.key, None if each.oldest is None else each.oldest.id) for each in found]


def naive_work(server: Server) -> dict[str, list[Any]]:
    """By channel: what waits, what is in work, and since when the oldest of each."""
    found: dict[str, list[Any]] = {}
    for session in queues(server):
        flying = session.queue.in_flight()
        for entry in session.queue.entries():
            if not is_work(entry.message):
                continue
            row = found.setdefault(entry.message.channel, [0, 0, [], []])
            is_in_work = entry.seq in flying
            row[is_in_work] += 1
            row[2 + is_in_work].append(entry.handed_at if is_in_work else entry.message.id)
    return found


KINDS = (*["publish"] * 3, "address", "connect", "look", "refuse", "hold", "wait")
STEPS = st.lists(
    st.tuples(st.sampled_from(KINDS), st.integers(0, 11), st.integers(0, 29)), max_size=40
)


@given(steps=STEPS, step=st.integers(1, 5))
def test_a_tally_agrees_with_a_naive_count_whatever_has_happened(
    steps: Sequence[tuple[str, int, int]], step: int
) -> None:
    shop = Shop()
    for what, which, number in steps:
        shop.do(what, which, number)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tally, "_STEP", step)
        found = taken(shop.server)
    # Everything below looks closer, and makes entries of fresh batches.
    all_queues = queues(shop.server)
    entries = [entry for each in all_queues for entry in each.queue.entries()]
    flying = sum(len(each.queue.in_flight()) for each in all_queues)
    assert (found.waiting, found.in_flight) == (len(entries) - flying, flying)
    by_channel = Counter(entry.message.channel for entry in entries)
    assert {each.channel: each.count for each in found.channels().first()} == by_channel
    holders = Counter(
        channel for each in all_queues for channel in {m.channel for m in each.queue.messages()}
    )
    assert {each.channel: each.receivers for each in found.channels().first()} == holders
    oldest = {each.key: min(each.queue.ids()) for each in all_queues if each.queue.count}
    assert ids(found.oldest.first()) == sorted(oldest.items(), key=lambda pair: pair[1])
    sizes = {each.key: each.queue.count for each in all_queues if each.queue.count}
    assert {each.receiver.key: each.count for each in found.fullest.first()} == sizes
    held = {each.key for each in all_queues if each.dispatcher and each.dispatcher.hold_record}
    assert {each.receiver.key for each in found.held_back.first()} == held
    lost = {
        each.key
        for each in all_queues
        if each.connection_state in (DispatcherState.POLLING, DispatcherState.DEAD)
    }
    assert {each.receiver.key for each in found.out_of_reach.first()} == lost
    work = {
        each.channel: [
            each.total.waiting,
            each.total.in_work,
            each.total.oldest,
            each.total.since,
        ]
        for each in found.work().first()
    }
    assert work == {
        channel: [waiting, flying, min(old, default=None), min(since, default=None)]
        for channel, (waiting, flying, old, since) in naive_work(shop.server).items()
    }


@given(sizes=st.lists(st.integers(0, 9)), most=st.integers(1, 5))
def test_the_largest_of_many_are_kept_and_the_others_counted(sizes: list[int], most: int) -> None:
    found: Largest[int] = Largest(most)
    for size in sizes:
        found.add(size, size)
    assert found.first() == sorted(sizes, reverse=True)[:most]
    assert found.count == len(sizes)


def client_of(server: Server, key: str = "joe/1") -> Client:
    return receiver(server, key)


def test_a_tally_leaves_a_fresh_batch_as_it_is() -> None:
    server = server_of()
    client = client_of(server)
    publish(server, 1, 2)
    connect(client)
    found = taken(server)
    assert (found.waiting, found.in_flight) == (0, 2)
    assert not isinstance(client.session.queue.glance(), list)


def test_copies_from_histories_and_replays_do_not_count_as_the_oldest() -> None:
    server = server_of()
    queue = client_of(server).session.queue
    publish(server, 1)
    [known] = queue.messages()
    for name in ("is_initial", "generation"):
        old = Message(b"{}", id=1, channel="/a")
        setattr(old, name, 1 if name == "generation" else True)
        queue.new.append(old)
    assert [each.oldest for each in taken(server).oldest.first()] == [known]


def test_all_reply_channels_are_one() -> None:
    server = server_of()
    queue = client_of(server).session.queue
    for number in range(5):
        queue.offer(Message(b"{}", id=number + 1, channel=f"/ret/{number}"))
    [found] = taken(server).channels().first()
    assert (found.channel, found.waiting, found.receivers) == (ALL_REPLIES, 5, 1)


def test_the_number_of_channels_that_are_told_apart_is_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tally, "_MOST_CHANNELS", 10)
    server = server_of()
    queue = client_of(server).session.queue
    for number in range(100):
        queue.offer(Message(b"{}", id=number + 1, channel=f"/c/{number}"))
        queue.offer(Message(b"{}", id=number + 201, channel="/busy"))
    monkeypatch.setattr(tally, "_STEP", 4)
    found = taken(server, most=3).channels()
    assert (found.first()[0].channel, found.first()[0].waiting) == ("/busy", 100)
    assert found.count == 101
    assert len(found.first()) == 3


def test_the_oldest_of_many_priorities_is_found_wherever_it_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tally, "_STEP", 1)
    server = server_of()
    queue = client_of(server).session.queue
    for number, priority in ((1, 2), (2, 5), (3, 9)):
        message = Message(b"{}", id=number, channel="/a")
        message.priority = priority
        queue.offer(message)
    assert ids(taken(server).oldest.first()) == [("joe/1", 1)]


def test_work_is_timed_from_the_first_hand_over_of_what_a_worker_has() -> None:
    shop = Shop()
    worker = shop.clients[2]
    for client in shop.clients[:2]:
        client.unsubscribe("/jobs/*")
    for number in (1, 2):
        shop.do("publish", 2, number)
        shop.do("look", 2, 0)
        shop.server.advance(1.0)
    [work] = taken(shop.server).work().first()
    first, second = (entry.handed_at for entry in worker.session.queue.entries())
    assert first < second
    assert (work.total.in_work, work.total.since) == (2, first)
    assert [(each.receiver, each.since) for each in work.workers.first()] == [("judge/1", first)]


CHANGES: dict[str, Callable[[Client], object]] = {
    "hand over": connect,
    "publish": lambda client: publish(client.server, *range(20)),
    "clear": lambda client: client.server.bayeux.life.clear(client.session),
    "end": lambda client: client.disconnect(),
}


@pytest.mark.parametrize("change", CHANGES)
def test_queues_may_change_between_two_steps(change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tally, "_STEP", 2)
    server = server_of()
    client = client_of(server)
    publish(server, *range(10))
    connect(client)
    publish(server, *range(10))
    state = server.bayeux.state
    found = Tally(state.sessions, state.waiting_places, has_work=True, most=9)
    for number, _ in enumerate(found.steps()):
        if number == 1:
            CHANGES[change](client)
            server.turn()
    # It has seen the queue as it was, but for what left a list under its eyes.
    assert (found.in_flight, found.waiting) == (10, 10)
