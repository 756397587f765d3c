"""Too many sessions, subscriptions, channels, requests, connections."""

import resource
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import orjson
import pytest

from tests.abuse.attacker import BUSY, HANDSHAKE, MIB, TIMEOUT_S, Person, Wire, many, request
from tests.abuse.conftest import FRONT_ENDS, IMPATIENT, PATIENT, MakeTarget
from tests.abuse.target import Target

HELLO = request(orjson.dumps([HANDSHAKE]))


def leave(*persons: Person) -> None:
    for person in persons:
        person.ask(person.message("/meta/disconnect"))
        person.close()


def test_handshakes_beyond_the_rate_are_told_when_to_come_back(target_with: MakeTarget) -> None:
    target = target_with(handshake_rate=10)
    with target.person() as bystander, target.wire() as wire:
        began_at = time.monotonic()
        wire.send(HELLO * 200)
        answers = [wire.answer() for _ in range(200)]
        replies = [answer.messages()[0] for answer in answers]
        refused = [reply for reply in replies if not reply["successful"]]
        assert 200 - len(refused) < 12 + 10 * (time.monotonic() - began_at)
        assert len(refused) > 100
        assert {reply["error"] for reply in refused} == {BUSY}
        assert {reply["advice"]["reconnect"] for reply in refused} == {"handshake"}
        intervals = {reply["advice"]["interval"] for reply in refused}
        assert len(intervals) > 50, "everybody comes back at the same moment"
        assert min(intervals) >= 500
        assert all(answer.status == 200 for answer in answers)
        # Clients that are connected do not notice.
        assert bystander.publish("/a", 1).messages()[-1]["successful"]
    # Later, the check at the end sees that others are let in.
    time.sleep(0.3)


def test_the_number_of_sessions_is_limited(target_with: MakeTarget) -> None:
    target = target_with(max_sessions=30, max_interval=2000, timeout=60_000)
    target.until_metric("holdfast_sessions", 0)
    with target.person() as bystander, target.wire() as wire:
        bystander.hold()
        target.until_metric("holdfast_connects_held", 1)
        wire.send(HELLO * 100)
        # Sessions that never connect make room for later ones.
        assert all(wire.answer().messages()[0]["successful"] for _ in range(100))
        assert target.metric("holdfast_sessions") <= 30
        assert target.metric("holdfast_connects_held") == 1
    target.until_metric("holdfast_sessions", 0)


def test_handshakes_are_refused_while_connected_clients_hold_all_session_slots(
    target_with: MakeTarget,
) -> None:
    target = target_with(max_sessions=10, timeout=60_000)
    target.until_metric("holdfast_sessions", 0)
    with ExitStack() as stack, target.wire() as wire:
        for _ in range(10):
            stack.enter_context(target.person()).hold()
        target.until_metric("holdfast_connects_held", 10)
        wire.send(HELLO * 10)
        replies = [wire.answer().messages()[0] for _ in range(10)]
        assert {reply["error"] for reply in replies} == {BUSY}
        assert all(reply["advice"]["reconnect"] == "handshake" for reply in replies)
        assert target.metric("holdfast_connects_held") == 10
    target.until_metric("holdfast_sessions", 0)


def test_a_flood_of_handshakes_costs_little_and_leaves_nothing_behind(target: Target) -> None:
    before = target.metric("holdfast_sessions_created_total")
    with target.bystander(), target.wire() as wire:
        for _ in range(30):
            wire.send(HELLO * 100)
            for _ in range(100):
                wire.answer()
        assert target.metric("holdfast_sessions_created_total") >= before + 3000
        assert target.growth_mib() < 30
    target.until_metric("holdfast_sessions", 0)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"supportedConnectionTypes": []},
        {"supportedConnectionTypes": ["pigeon"]},
        {"supportedConnectionTypes": "long-polling"},
        {"supportedConnectionTypes": None},
        {"supportedConnectionTypes": [["long-polling"]]},
        {"supportedConnectionTypes": {"long-polling": 1}},
        {"supportedConnectionTypes": [1] * 10_000},
    ],
)
def test_a_handshake_without_a_transport_of_the_server_creates_no_session(
    fields: dict[str, object], target: Target
) -> None:
    before = target.metric("holdfast_sessions_created_total")
    with target.wire() as wire:
        wire.send(request(orjson.dumps([{"channel": "/meta/handshake", **fields}])))
        assert wire.answer().error() == "406::connection_types_unsupported"
    assert target.metric("holdfast_sessions_created_total") == before


def test_subscriptions_are_bounded_and_all_or_nothing(target_with: MakeTarget) -> None:
    target = target_with(max_subscriptions=100)
    with target.bystander(), target.person() as person:
        assert person.subscribe(*[f"/a/{n}" for n in range(90)]).messages()[0]["successful"]
        answer = person.subscribe(*[f"/b/{n}" for n in range(11)])
        assert answer.error() == "413:100:subscriptions_exceeded"
        assert person.publish("/b/0", 1).messages()[0].get("data") is None
        assert person.subscribe(*[f"/a/{n}" for n in range(100)]).messages()[0]["successful"]
        assert person.subscribe("/one/more").error() == "413:100:subscriptions_exceeded"
        leave(person)


def test_a_flood_of_subscriptions_leaves_nothing_behind(target_with: MakeTarget) -> None:
    # On a slow machine it takes long until everybody has subscribed.
    target = target_with(max_interval=60_000)

    def channel(number: int) -> str:
        return f"/flood/{number}/" + "x" * 200

    with target.bystander(), ExitStack() as stack:
        persons = [stack.enter_context(target.person()) for _ in range(3)]
        for person in persons:
            for start in range(0, 10_000, 2_000):
                names = [channel(number) for number in range(start, start + 2_000)]
                assert person.subscribe(*names).messages()[0]["successful"]
            assert person.subscribe("/one/more").error() == "413:10000:subscriptions_exceeded"
        assert target.metric("holdfast_subscribed_channels") >= 10_000
        leave(*persons)
        target.until_metric("holdfast_subscribed_channels", 1)
    assert target.growth_mib() < 60


@pytest.mark.parametrize(
    "name",
    [
        "/" + "x" * 1024,
        "/x" * 65,
        "/a//b",
        "//a",
        "/",
        "",
        "a",
        "/a\r\nb",
        "/a\0",
        "/a/**/b",
        "/\N{CYRILLIC SMALL LETTER A}",
        "/%61",
        "/a?b",
        "/..;",
    ],
)
def test_malformed_channel_names_are_refused(name: str, target: Target) -> None:
    with target.person() as person:
        assert person.subscribe(name).error() == "403::subscription_invalid"
        assert person.publish(name, 1).error() == "405::channel_invalid"


@pytest.mark.parametrize(
    "name",
    [
        "/meta/subscribe",
        "/meta/subscribe/x",
        "/meta/subscribe/",
        "/meta/subscribe ",
        "/meta/ subscribe",
        "/meta/handshake ",
        "/meta/**",
        "/meta/*",
        "/meta/x",
    ],
)
def test_meta_channels_cannot_be_used_as_ordinary_channels(name: str, target: Target) -> None:
    with target.person() as person:
        for names in ([name], ["/fine", name]):
            (reply,) = person.subscribe(*names).messages()
            assert not reply["successful"]
            assert reply["error"].startswith("403:")
        assert person.publish("/fine", 1).messages()[0].get("data") is None
        if name not in ("/meta/subscribe",):
            assert not person.publish(name, 1).messages()[-1]["successful"]


def test_subscriptions_to_patterns_get_no_meta_or_service_messages(target: Target) -> None:
    with target.person() as person:
        person.subscribe("/**", "/*", "/service/**")
        person.publish("/service/secret", 1)
        with target.person() as other:
            other.publish("/service/secret", 1)
            leave(other)
        assert [each["channel"] for each in person.publish("/a", 1).messages()] == ["/a", "/a"]


def test_publishing_to_ever_new_channels_adds_no_metrics_and_keeps_no_names(
    target: Target,
) -> None:
    def names() -> set[str]:
        with target.wire() as wire:
            wire.send(b"GET /metrics HTTP/1.1\r\nHost: h\r\n\r\n")
            lines = wire.answer().body.decode().splitlines()
        return {line.rpartition(" ")[0] for line in lines if not line.startswith("#")}

    before = names()
    with target.bystander(), target.person() as person:
        for start in range(0, 30_000, 1_000):
            numbers = range(start, start + 1_000)
            messages = [
                person.message(f"/new/{number}/{'y' * 400}", data=number, id=f"i{number}")
                for number in numbers
            ]
            person.ask(*messages)
    assert names() == before
    assert target.growth_mib() < 60


def test_many_connections_that_say_nothing_cost_little(target_with: MakeTarget) -> None:
    target = target_with(**IMPATIENT)
    with target.bystander(), many(400, target.url) as wires:
        for wire in wires[::2]:
            wire.send(b"POST")
        target.until_metric("holdfast_connects_held", 0)
        assert target.growth_mib() < 30
        assert all(wire.is_closed() for wire in wires), "begun or silent, each has the same time"


@contextmanager
def few_files(target: Target, spare: int) -> Iterator[None]:
    """The server may open only so many more."""
    process = target.process_id
    before = resource.prlimit(process, resource.RLIMIT_NOFILE)
    now_open = int(target.metric("process_open_fds"))
    resource.prlimit(process, resource.RLIMIT_NOFILE, (now_open + spare, before[1]))
    try:
        yield
    finally:
        resource.prlimit(process, resource.RLIMIT_NOFILE, before)


def test_running_out_of_files_is_survived(target: Target) -> None:
    with target.person() as guest, ExitStack() as stack:
        guest.subscribe("/a")
        with few_files(target, spare=5):
            crowd = stack.enter_context(many(60, target.url))
            for wire in crowd:
                wire.send_until_refused(HELLO)
            # Connected clients are served, and waiting connections do not keep the loop busy.
            assert guest.publish("/a", 1).messages()[0]["data"] == 1
            before = target.processor_s()
            time.sleep(0.5)
            assert target.processor_s() - before < 0.35, "the server is busy with waiting"
            assert guest.publish("/a", 2).messages()[0]["data"] == 2
        stack.close()
        with target.person() as later:
            assert later.publish("/a", 3).messages()[0]["successful"]


def test_a_crowd_of_pipelining_clients_is_bounded(target: Target) -> None:
    with target.bystander(), ExitStack() as stack:
        for _ in range(20):
            person = stack.enter_context(target.person())
            person.hold()
            person.send_until_refused(b"POST /cometd HTTP/1.1\r\n" + b"X: y\r\n" * 20_000)
        assert target.growth_mib() < 30


@pytest.mark.parametrize("behind", [60_000, 200_000])
def test_the_bytes_that_wait_behind_a_held_connect_are_bounded(behind: int, target: Target) -> None:
    is_too_much = behind > 64 * 1024
    with target.person() as person:
        person.hold()
        target.until_metric("holdfast_connects_held", 1)
        person.send_until_refused(b"x" * behind)
        assert person.is_closed(TIMEOUT_S if is_too_much else 0.5) == is_too_much
        target.until_metric("holdfast_connects_held", not is_too_much)


def test_requests_behind_a_held_connect_are_answered_after_it_in_order(
    either_front_end: Target,
) -> None:
    with either_front_end.person() as person, either_front_end.person() as waker:
        person.subscribe("/wake")
        person.hold()
        numbers = list(range(100))
        for number in numbers:
            person.say(person.message("/a", data=number, id=f"n{number}"))
        assert not person.has_answer()
        waker.publish("/wake", "up")
        assert person.answer().messages()[0]["data"] == "up"
        heard = [person.answer().messages()[-1]["id"] for _ in numbers]
        assert heard == [f"n{number}" for number in numbers]


@pytest.mark.parametrize("fast_lane", FRONT_ENDS, ids=["fast lane", "ordinary front end"])
def test_a_client_that_hangs_up_is_noticed_at_once_and_its_queue_kept(
    target_with: MakeTarget, fast_lane: bool
) -> None:
    # Nothing but the end of the connection ends its connect during the test.
    target = target_with(fast_lane=fast_lane, **PATIENT)
    with target.person() as person, target.person() as publisher:
        person.subscribe("/a")
        person.hold()
        target.until_metric("holdfast_connects_held", 1)
        person.close()
        target.until_metric("holdfast_connects_held", 0)
        publisher.publish("/a", "kept")
        with Wire(target.url) as again:
            again.send(request(orjson.dumps([person.connect_message()]), person.headers))
            assert again.answer().messages()[0]["data"] == "kept"


def test_a_storm_on_one_channel_does_not_slow_another_down(target: Target) -> None:
    with ExitStack() as stack:
        listeners = [stack.enter_context(target.socket_person()) for _ in range(20)]
        for listener in listeners:
            listener.settle_in("/storm")
        publisher = stack.enter_context(target.person())
        with target.bystander():
            for _ in range(20):
                message = publisher.message("/storm", data="x" * 1000)
                publisher.ask(*[message] * 100)
        assert target.growth_mib() < 2 * 20 * 8 * MIB / MIB
