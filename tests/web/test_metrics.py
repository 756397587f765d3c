"""Metrics: they account for every accepted entry, and have few labels."""

import asyncio
import platform
import time
from collections.abc import AsyncIterator, Iterator

import orjson
import pytest
from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from holdfast.bayeux.limits.admission import AdmissionRefusal
from holdfast.bayeux.wire.errors import ErrorReply
from holdfast.bayeux.wire.login import LoginMethod
from holdfast.delivery.basics.session_states import SessionInput
from holdfast.delivery.basics.steps import Reason
from holdfast.delivery.basics.times import STEPS_S, WAITS_S
from holdfast.delivery.messages.letter_quota import OVERHEAD, Removal
from holdfast.delivery.requests.request import ReplyFault, RequestEnd
from holdfast.distribution import core, release
from holdfast.extensions.ack import Ack
from holdfast.extensions.delivery_wire import DeliveryWire
from holdfast.settings import Settings
from holdfast.web.admin.alert_limits import Alert
from holdfast.web.admin.alerts import Alerts
from holdfast.web.front.connection_limit import ConnectionLimit
from holdfast.web.prometheus.forms import Form
from holdfast.web.prometheus.metric_families import MetricFamilies
from holdfast.web.prometheus.metrics import Metrics
from tests.openmetrics import read_openmetrics
from tests.web.requests import CLIENT_ID, CONNECT, COOKIE, DISCONNECT, HANDSHAKE, PUBLISH, SUBSCRIBE
from tests.web.requests import post as request
from tests.web.requests import post_messages as post
from tests.web.rig import LONG_S, Client, Rig

pytestmark = pytest.mark.untraced

HELLO = post(HANDSHAKE, cookie="")
NO_JSON = request(b"no JSON", ["Content-Type: application/json", f"Cookie: {COOKIE}"])
IN_NO_QUEUE = "holdfast_entries_settled_total"
BEFORE = "holdfast_entries_restored_total"
IN_A_QUEUE = ("holdfast_entries_waiting", "holdfast_entries_in_flight")


@pytest.fixture
async def rig() -> AsyncIterator[Rig]:
    options = Settings(max_queue=3, max_queue_bytes=500)
    async with Rig(options=options) as rig:
        rig.bayeux.state.installed.extend(Ack(rig.server, announces_batch=False))
        yield rig


class Figures:
    """The metrics as a scraper reads them."""

    def __init__(self, text: str) -> None:
        self.samples = {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }

    def __call__(self, name: str, **labels: str) -> float:
        return self.samples[name, frozenset(labels.items())]

    def total(self, name: str) -> float:
        return sum(value for (each, _), value in self.samples.items() if each == name)


async def figures(rig: Rig) -> Figures:
    text = await Metrics(rig.bayeux, {"main": ConnectionLimit(1)}, Alerts(), rig.right).text(
        Form.TEXT
    )
    found = Figures(text.decode())
    places = found.total(IN_NO_QUEUE) + sum(map(found, IN_A_QUEUE))
    assert found("holdfast_entries_accepted_total") + found(BEFORE) == places
    return found


async def subscriber(rig: Rig, **handshake: object) -> Client:
    client = rig.connect()
    await client.send(post({**HANDSHAKE, **handshake}, cookie=""), post(SUBSCRIBE), post(CONNECT))
    return client


async def publish(rig: Rig, count: int, **fields: object) -> None:
    """Publish one message after the other; those with more fields wait for the store."""
    client = rig.connect()
    await client.send(HELLO)
    (reply,) = orjson.loads(client.heard().responses[0].body)
    cookie = client.heard().responses[0].headers["set-cookie"].partition(";")[0]
    message = {**PUBLISH, "clientId": reply["clientId"], **fields}
    for _ in range(count):
        await client.send(post(message, cookie=cookie))
        if fields:
            rig.keeper.turn()


async def test_entries_of_plain_receivers_count_as_acked_when_written(rig: Rig) -> None:
    client = await subscriber(rig)
    await client.send(post(CONNECT))
    assert (await figures(rig))("holdfast_connects_held") == 1
    await publish(rig, 2)
    found = await figures(rig)
    assert found("holdfast_messages_published_total") == 2
    assert found("holdfast_entries_accepted_total") == 2
    assert found("holdfast_entries_settled_total", outcome="acked") == 1
    assert found("holdfast_entries_waiting") == 1
    assert found("holdfast_connects_held") == 0
    await client.send(post(CONNECT))
    assert (await figures(rig))("holdfast_entries_settled_total", outcome="acked") == 2


async def test_unacked_entries_count_as_in_flight(rig: Rig) -> None:
    client = await subscriber(rig, ext={"ack": True})
    await publish(rig, 2)
    await client.send(post({**CONNECT, "ext": {"ack": 0}}))
    found = await figures(rig)
    assert (found("holdfast_entries_in_flight"), found("holdfast_entries_waiting")) == (2, 0)
    await client.send(post({**CONNECT, "ext": {"ack": 99}, "advice": {"timeout": 0}}))
    found = await figures(rig)
    assert found("holdfast_acks_out_of_range_total") == 1
    assert found("holdfast_entries_redelivered_total") == 2
    await client.send(post({**CONNECT, "ext": {"ack": 2}, "advice": {"timeout": 0}}))
    assert (await figures(rig))("holdfast_entries_settled_total", outcome="acked") == 2


async def test_refusals_with_codes_of_receivers_own_are_counted_by_a_listed_code(
    rig: Rig,
) -> None:
    rig.bayeux.state.installed.extend(DeliveryWire(rig.server))
    client = await subscriber(rig, ext={"ack": True, "delivery": True})
    await publish(rig, 2)
    await client.send(post({**CONNECT, "ext": {"ack": 0}, "advice": {"timeout": 0}}))
    verdicts = [{"seq": n, "errorCode": f"user.paper.empty_{n}"} for n in (1, 2)]
    ext = {"delivery": {"verdicts": verdicts}}
    await client.send(post({**CONNECT, "ext": ext, "advice": {"timeout": 0}}))
    found = await figures(rig)
    assert found("holdfast_deliveries_failed_total", family="user") == 2
    labels = {value for _, pairs in found.samples for _, value in pairs}
    assert not [value for value in labels if "paper" in value]


async def test_overflow_is_counted_by_the_limit_that_was_reached(rig: Rig) -> None:
    await subscriber(rig)
    await publish(rig, 5)
    name, limit = "holdfast_entries_discarded_total", Reason.OVERFLOW_ENTRIES.value
    found = await figures(rig)
    assert found(name, reason=limit) == 2
    assert found("holdfast_entries_waiting") == 3
    rig.pass_time(LONG_S)
    found = await figures(rig)
    assert found(name, reason=Reason.SESSION_EXPIRED.value) == 3
    assert found("holdfast_sessions_ended_total", reason="expire") >= 1
    assert found("holdfast_sessions", state="connected") == 0


async def test_the_entries_of_a_client_that_leaves_are_accounted_for(rig: Rig) -> None:
    client = await subscriber(rig, ext={"ack": True})
    await publish(rig, 2)
    await client.send(post(DISCONNECT))
    found = await figures(rig)
    assert found("holdfast_entries_waiting") + found("holdfast_entries_in_flight") == 0
    assert found("holdfast_entries_settled_total", outcome="discarded") == 2
    assert found("holdfast_sessions_ended_total", reason="disconnect") == 1


async def test_error_replies_and_refused_requests_are_counted_by_their_reason(rig: Rig) -> None:
    client = rig.connect()
    await client.send(HELLO, post({**CONNECT, "clientId": "nobody"}), NO_JSON)
    name, found = "holdfast_errors_total", await figures(rig)
    assert found(name, code="402", reason="session_unknown") == 1
    assert found(name, code="400", reason="request_malformed") == 1
    assert found.total(name) == 2


async def test_publishes_with_a_known_key_are_counted_as_repeated(rig: Rig) -> None:
    await publish(rig, 3, ext={"delivery": {"key": "k"}})
    rig.keeper.keys_dropped, rig.keeper.losses = 7, 2
    found = await figures(rig)
    assert found("holdfast_messages_published_total") == 1
    assert found("holdfast_publishes_repeated_total") == 2
    assert found("holdfast_publish_keys_dropped_total") == 7
    assert found("holdfast_store_went_back_total") == 2


async def test_sessions_are_counted_by_their_state(rig: Rig) -> None:
    client = rig.connect()
    await client.send(HELLO)
    found = await figures(rig)
    assert found("holdfast_sessions", state="handshaken") == 1
    await client.send(post(CONNECT))
    found = await figures(rig)
    assert found("holdfast_sessions", state="handshaken") == 0
    assert found("holdfast_sessions", state="connected") == 1
    assert found("holdfast_sessions_created_total") == 1


async def test_a_session_whose_client_is_lost_does_not_count_as_connected(rig: Rig) -> None:
    rig.bayeux.state.installed.extend(DeliveryWire(rig.server))
    await subscriber(rig, ext={"ack": True, "delivery": {"retries": 5, "delay": 60_000}})
    rig.pass_time(rig.bayeux.state.options.max_interval_s + 1)
    found = await figures(rig)
    assert found("holdfast_sessions", state="connected") == 0
    assert found("holdfast_sessions", state="lost") == 1


async def test_labels_have_only_values_of_their_tables(rig: Rig) -> None:
    await subscriber(rig, ext={"ack": True})
    await publish(rig, 5)
    found = await figures(rig)
    values: dict[str, set[str]] = {}
    reasons: dict[str, set[str]] = {}
    outcomes: dict[str, set[str]] = {}
    for name, labels in found.samples:
        if name.startswith("holdfast_"):
            for label, value in labels:
                if label == "reason":
                    reasons.setdefault(name, set()).add(value)
                elif label == "outcome":
                    outcomes.setdefault(name, set()).add(value)
                else:
                    values.setdefault(label, set()).add(value)
    ends = SessionInput.DISCONNECT, SessionInput.EXPIRE, SessionInput.FAIL
    assert reasons == {
        "holdfast_entries_discarded_total": {reason.value for reason in Reason},
        "holdfast_sessions_ended_total": {end.value for end in ends},
        "holdfast_handshakes_refused_total": {why.value for why in AdmissionRefusal},
        "holdfast_replies_refused_total": {fault.value for fault in ReplyFault},
        "holdfast_dead_letters_removed_total": {why.value for why in Removal},
        "holdfast_errors_total": {error.reason for error in ErrorReply},
    }
    assert outcomes == {
        "holdfast_entries_settled_total": {"acked", "dead", "expired", "discarded", "moved"},
        "holdfast_requests_ended_total": {end.value for end in RequestEnd},
    }
    assert values == {
        "state": {
            *("handshaken", "connected", "away", "lost"),
            *("UNCONFIGURED", "ALIVE", "UNREFERENCED", "SOFTERASED"),
        },
        "listener": {"main"},
        "family": {"communication", "internal", "legacy", "resource", "user"},
        "kind": {
            *("requests", "handshakes", "publishes", "bytes", "letters", "addressed"),
            *("sessions", "subscriptions", "topics", "waiting_bytes"),
        },
        "method": {"failed", *(method.value for method in LoginMethod)},
        "alert": {alert.value for alert in Alert},
        "code": {str(error.code) for error in ErrorReply},
        "version": {release()},
        "python": {platform.python_version()},
        "core": {core()},
        "receiver": {"plain", "acking", "durable"},
        "le": {"+Inf", *map(str, (*WAITS_S, *STEPS_S))},
    }
    assert CLIENT_ID not in str(found.samples)


async def test_the_time_of_messages_is_counted_by_kind_of_receiver(rig: Rig) -> None:
    client = await subscriber(rig, ext={"ack": True})
    await subscriber(rig)
    await publish(rig, 2)
    await client.send(post({**CONNECT, "ext": {"ack": 0}, "advice": {"timeout": 0}}))
    found = await figures(rig)
    assert found("holdfast_hand_over_seconds_count", receiver="acking") == 2
    assert found("holdfast_ack_seconds_count", receiver="acking") == 0
    await client.send(post({**CONNECT, "ext": {"ack": 3}, "advice": {"timeout": 0}}))
    found = await figures(rig)
    assert found("holdfast_ack_seconds_count", receiver="acking") == 2
    assert found("holdfast_hand_over_seconds_bucket", receiver="acking", le="+Inf") == 2
    assert found("holdfast_hand_over_seconds_count", receiver="plain") == 0


@pytest.mark.parametrize("form", [Form.OPENMETRICS, Form.WITH_EXAMPLES])
async def test_openmetrics_has_the_same_figures_and_examples_for_operators_only(
    rig: Rig, form: Form
) -> None:
    client = await subscriber(rig, ext={"ack": True})
    await publish(rig, 1)
    await client.send(post({**CONNECT, "ext": {"ack": 0}, "advice": {"timeout": 0}}))
    metrics = Metrics(rig.bayeux, {"main": ConnectionLimit(1)}, Alerts(), rig.right)
    old = Figures((await metrics.text(Form.TEXT)).decode())
    text = (await metrics.text(form)).decode()
    samples = [each for family in read_openmetrics(text) for each in family.samples]
    assert {each.name for each in samples} == {name for name, _ in old.samples}
    assert [text.count("# EOF"), text.endswith("# EOF\n")] == [1, True]
    examples = [each.exemplar for each in samples if each.exemplar is not None]
    ids = [example.labels["message_id"] for example in examples]
    assert len(ids) == (form is Form.WITH_EXAMPLES)
    assert all(id.startswith("test-17000000000") for id in ids)


async def test_every_figure_is_explained(rig: Rig) -> None:
    text = await Metrics(rig.bayeux, {"main": ConnectionLimit(1)}, Alerts(), rig.right).text(
        Form.TEXT
    )
    families = list(text_string_to_metric_families(text.decode()))
    assert len({family.name for family in families}) == len(families)
    assert {family.name for family in families} > {"process_open_fds", "python_info"}
    assert all(family.documentation for family in families)


class Reading(Collector):
    """Notes when metrics were read."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def collect(self) -> Iterator[Metric]:
        self.times.append(time.monotonic())
        yield CounterMetricFamily("test_readings", "Readings so far.", value=len(self.times))


class Slow(Collector):
    """Takes some time to read."""

    def __init__(self) -> None:
        self.taken_s: list[float] = []

    def collect(self) -> Iterator[Metric]:
        begin = time.monotonic()
        sum(range(100_000))
        self.taken_s.append(time.monotonic() - begin)
        return iter([])


async def test_simultaneous_callers_share_a_reading_and_later_ones_get_a_new_one(rig: Rig) -> None:
    metrics, reading = Metrics(rig.bayeux, {}, Alerts(), rig.right), Reading()
    metrics._families = MetricFamilies(rig.bayeux, {}, Alerts(), rig.right)
    metrics._families.server.register(reading)
    reading.times.clear()
    for number in range(1, 4):
        asked_at = time.monotonic()
        texts = await asyncio.gather(*(metrics.text(Form.TEXT) for _ in range(50)))
        assert len(reading.times) == number
        assert reading.times[-1] >= asked_at
        assert {f"test_readings_total {number}.0" in text.decode() for text in texts} == {True}


async def test_after_a_slow_reading_the_next_one_waits(rig: Rig) -> None:
    metrics = Metrics(rig.bayeux, {}, Alerts(), rig.right)
    reading, slow = Reading(), Slow()
    metrics._families = MetricFamilies(rig.bayeux, {}, Alerts(), rig.right)
    metrics._families.server.register(reading)
    metrics._families.server.register(slow)
    for _ in range(3):
        await metrics.text(Form.TEXT)
    *_, before, last = reading.times
    assert last - before > 10 * slow.taken_s[-2]


async def test_the_room_that_dead_letters_take_is_measured(rig: Rig) -> None:
    room = rig.keeper.letter_quota
    room.add("/a", "joe", 100)
    room.removed[Removal.SHARE] = 3
    found = await figures(rig)
    assert found("holdfast_dead_letters") == 1
    assert found("holdfast_dead_letters_bytes") == 100 + OVERHEAD
    assert found("holdfast_dead_letters_removed_total", reason="share") == 3
    assert found("holdfast_dead_letters_removed_total", reason="age") == 0
