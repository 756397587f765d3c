"""The small parts of the client: its life, its choice of transports, its tables."""

from dataclasses import dataclass
from types import SimpleNamespace

import pytest

import holdfast
from holdfast import client, distribution, interface
from holdfast.client import subscriptions
from holdfast.client.finished_ids import FinishedIds
from holdfast.client.life import ClientInput, ClientState, WrongUse, next_state
from holdfast.client.subscription_table import SubscriptionTable
from holdfast.client.subscriptions import NewSubscription
from holdfast.client.transport_choice import LONG_POLLING, WEBSOCKET, TransportChoice
from holdfast.client.wire import complete_link, is_reply, packed, part_of


def test_the_package_says_its_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distribution, "release", lambda: "1.2.3")
    assert holdfast.__version__ == "1.2.3"


def test_a_closed_client_stays_closed() -> None:
    for seen in {*ClientInput} - {ClientInput.END}:
        with pytest.raises(WrongUse):
            next_state(ClientState.CLOSED, seen)


def test_every_state_but_the_first_can_end() -> None:
    for state in {*ClientState} - {ClientState.NEW}:
        assert next_state(state, ClientInput.END) is ClientState.CLOSED


def test_the_preferred_transport_is_used_again_after_a_pause_that_doubles() -> None:
    choice = TransportChoice([WEBSOCKET, LONG_POLLING])
    assert choice.choose(0.0) == WEBSOCKET
    choice.failed(WEBSOCKET, 0.0)
    assert choice.choose(9.9) == LONG_POLLING
    assert choice.choose(10.0) == WEBSOCKET
    choice.failed(WEBSOCKET, 10.0)
    assert choice.choose(29.9) == LONG_POLLING
    choice.trust(WEBSOCKET)
    assert choice.choose(11.0) == WEBSOCKET


def test_only_transports_of_the_server_are_used_unless_it_has_none_of_the_clients() -> None:
    choice = TransportChoice([WEBSOCKET, LONG_POLLING])
    choice.offered([LONG_POLLING, "callback-polling"])
    assert choice.choose(0.0) == LONG_POLLING
    choice.offered(["carrier-pigeon"])
    assert choice.choose(0.0) == WEBSOCKET
    choice.offered(None)
    assert choice.choose(0.0) == WEBSOCKET


def test_the_only_transport_is_used_even_if_it_failed() -> None:
    choice = TransportChoice([WEBSOCKET])
    choice.failed(WEBSOCKET, 0.0)
    assert choice.choose(1.0) == WEBSOCKET


@pytest.mark.parametrize("names", [[], ["carrier-pigeon"], [WEBSOCKET, "callback-polling"]])
def test_transports_that_the_client_does_not_have_are_refused(names: list[str]) -> None:
    with pytest.raises(ValueError, match="transports are"):
        TransportChoice(names)


def test_the_latest_ids_are_remembered_and_the_oldest_forgotten() -> None:
    ids = FinishedIds(most=4)
    for number in range(7):
        ids.add(str(number))
    assert [number for number in range(7) if str(number) in ids] == [4, 5, 6]


@dataclass(frozen=True)
class Subscribed:
    channel: str


def test_a_channel_has_the_subscriptions_to_it_and_to_the_patterns_that_cover_it() -> None:
    table: SubscriptionTable[Subscribed] = SubscriptionTable()
    names = ["/a/b", "/a/*", "/a/**", "/**", "/a", "/*", "/a/b/*", "/a/b/**"]
    for name in names:
        table.add(Subscribed(name))
    assert {each.channel for each in table.find("/a/b")} == {"/a/b", "/a/*", "/a/**", "/**"}
    assert {each.channel for each in table.find("/a")} == {"/a", "/*", "/**"}
    assert len([*table]) == len(names)


def test_removing_a_subscription_tells_whether_it_was_the_last_of_its_channel() -> None:
    table: SubscriptionTable[Subscribed] = SubscriptionTable()
    first, second = Subscribed("/a"), Subscribed("/a")
    table.add(first)
    table.add(second)
    assert table.find("/a") == [first, second]
    assert not table.remove(first)
    assert table.remove(second)
    assert not table.remove(second)
    assert table.find("/a") == []


def test_replies_are_distinguished_from_events() -> None:
    assert is_reply({"channel": "/a", "successful": True, "id": "1"})
    assert is_reply({"channel": "/meta/connect", "successful": False, "data": 5})
    assert not is_reply({"channel": "/a", "data": 1, "id": "1"})
    # The answer to a remote call.
    assert not is_reply({"channel": "/service/a", "data": 1, "id": "1", "successful": True})


def test_a_part_that_a_message_does_not_have_is_none() -> None:
    assert part_of({"ext": {"ack": 5}}, "ext", "ack") == 5
    assert part_of({"ext": 5}, "ext", "ack") is None
    assert part_of({}, "ext", "ack") is None


def test_clients_and_extensions_share_no_name() -> None:
    assert not {*client.__all__} & {*interface.__all__}


def test_all_names_of_the_client_can_be_imported_from_holdfast() -> None:
    for name in client.__all__:
        assert getattr(holdfast, name) is getattr(client, name)


def test_a_subscription_is_shown_with_its_channel() -> None:
    # Nothing but its channel is set: making one needs an event loop.
    subscription = NewSubscription.__new__(NewSubscription)
    subscription.channel = "/orders/**"
    assert repr(subscription) == "Subscription('/orders/**')"


@pytest.mark.parametrize(
    ("error", "ext", "see"),
    [
        ("404::no_responders", {}, ""),
        ("404::no_responders", {"see": "https://docs.example/#a"}, "https://docs.example/#a"),
        ("HTTP 413", {}, ""),
    ],
)
def test_an_error_says_where_it_is_explained(error: str, ext: dict[str, str], see: str) -> None:
    refused = client.ReplyError({"channel": "/a", "error": error, "ext": ext})
    assert refused.see == see
    assert str(refused).startswith(f"/a: {error}")
    assert str(refused).partition("; see ")[2] == see


@pytest.mark.parametrize(
    ("sent", "url"),
    [
        ("/docs/errors/#a", "http://127.0.0.1:8080/docs/errors/#a"),
        ("https://docs.example/#a", "https://docs.example/#a"),
    ],
)
def test_the_link_of_an_error_is_made_absolute(sent: str, url: str) -> None:
    reply = {"channel": "/a", "error": "404::no_responders", "ext": {"see": sent}}
    complete_link(reply, "http://127.0.0.1:8080/cometd")
    assert client.ReplyError(reply).see == url


def test_an_error_without_a_link_gets_none() -> None:
    reply = {"channel": "/a", "error": "404::no_responders"}
    complete_link(reply, "http://127.0.0.1:8080/cometd")
    assert reply == {"channel": "/a", "error": "404::no_responders"}


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_numbers_that_json_does_not_have_are_refused(number: float) -> None:
    for data in (number, {"a": [1.5, (number,)]}):
        with pytest.raises(ValueError, match="no JSON"):
            packed({"channel": "/a", "data": data})
    assert packed({"data": [None, 1.5, "NaN"]}) == b'{"data":[null,1.5,"NaN"]}'


@pytest.mark.parametrize("took_s", [0.9, 3.0])
def test_a_function_that_blocks_the_event_loop_is_named_in_the_log(
    took_s: float, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    now = 100.0

    def book(_: object) -> str:
        nonlocal now
        now += took_s
        return "booked"

    monkeypatch.setattr(subscriptions, "time", SimpleNamespace(monotonic=lambda: now))
    calling = subscriptions.run(book, client.Message({"channel": "/a", "data": 1}))
    with pytest.raises(StopIteration) as done:
        calling.send(None)
    assert done.value.value == "booked"
    assert ("book blocked the event loop for 3.0 s" in caplog.text) == (took_s > 1)


def test_a_token_with_the_word_of_its_header_is_refused() -> None:
    with pytest.raises(ValueError, match="without Bearer"):
        client.Client("http://127.0.0.1:9", token="Bearer x")
