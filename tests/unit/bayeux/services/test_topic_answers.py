"""What `/service/topics` answers to clients."""

from typing import Any

import pytest

from holdfast.bayeux.rights import Denial, SecurityPolicy
from holdfast.bayeux.session import Session
from holdfast.bayeux.wire.caller import Caller
from holdfast.bayeux.wire.login import Login, LoginMethod
from holdfast.bayeux.wire.operation import Operation
from holdfast.delivery.basics import json_text
from holdfast.delivery.topics.configured import TopicConfig
from holdfast.delivery.topics.states import TopicState
from holdfast.extensions.delivery_wire import DeliveryWire
from holdfast.settings import ChannelSettings
from tests.unit.bayeux.harness import Client, Json, Server

RULE = {"/t/**": ChannelSettings(topic=True, destroy_delay=-1)}
SERVICE = "/service/topics"


def server(**options: Any) -> Server:
    return Server(DeliveryWire, **{"channels": RULE, **options})


def ask(client: Client, data: Any) -> Json:
    """What the service answers."""
    asked = client.send({"channel": SERVICE, "data": data})
    client.server.turn()
    found = [each for each in asked.elements if "data" in each]
    if not found:
        return {"error": asked.reply.get("error")}
    (answer,) = found
    assert answer["channel"] == SERVICE
    assert answer["successful"] is ("code" not in answer["data"])
    return dict(answer["data"])


def test_the_service_answers_with_the_state_of_a_topic_and_its_figures() -> None:
    here = server()
    client = here.client()
    client.subscribe("/t/a")
    client.publish("/t/a", 1)
    assert ask(here.client(), {"state": "/t/a"}) == {
        "channel": "/t/a",
        "state": "ALIVE",
        "destroyDelay": -1,
        "readonly": False,
        "history": 0,
        "kept": 0,
        "queued": 0,
        "work": 0,
        "subscribers": 1,
    }


def test_the_state_of_a_topic_includes_what_waits_in_its_work_queue() -> None:
    rule = ChannelSettings(topic=True, work_queue=True)
    here = server(channels={"/t/**": rule})
    client = here.client()
    for n in range(2):
        client.publish("/t/a", n)
        here.turn()
    status = ask(client, {"state": "/t/a"})
    assert (status["queued"], status["work"]) == (2, 2)


def test_a_channel_that_is_no_topic_has_no_state() -> None:
    client = server().client()
    client.publish("/plain", 1)
    answer = ask(client, {"state": "/plain"})
    assert answer == {"code": "user.oid.unknown", "message": "/plain is not a topic"}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (None, "data must have exactly one of"),
        ({}, "data must have exactly one of"),
        ({"state": "/t/a", "list": "/t/a"}, "data must have exactly one of"),
        ({"state": 1}, "this is neither a channel nor"),
        ({"state": "/meta/connect"}, "this is neither a channel nor"),
        ({"state": "nothing"}, "this is neither a channel nor"),
        ({"state": "/t/a", "limit": 1}, "state has these options: none"),
        ({"list": "/t/*", "limit": 0}, "limit must be a number"),
        ({"list": "/t/*", "limit": 1001}, "limit must be a number"),
        ({"list": "/t/*", "limit": "1"}, "limit must be a number"),
        ({"list": "/t/*", "after": 1}, "after must be the name"),
        ({"erase": "/t/*", "forceDestroy": 1}, "forceDestroy must be"),
        (
            {"erase": "/t/*", "force": True},
            "erase has these options: after, forceDestroy, history, limit",
        ),
    ],
    ids=repr,
)
def test_an_invalid_call_is_answered_with_the_reason(data: Any, message: str) -> None:
    answer = ask(server().client(), data)
    assert answer["code"] == "user.illegalArgument"
    assert message in answer["message"]


def test_topics_are_listed_by_name_and_page_by_page() -> None:
    here = server()
    client = here.client()
    for name in ("/t/c", "/t/a", "/t/b", "/t/x/y"):
        client.publish(name, 1)
    first = ask(client, {"list": "/t/*", "limit": 2})
    assert [each["channel"] for each in first["topics"]] == ["/t/a", "/t/b"]
    rest = ask(client, {"list": "/t/*", "limit": 2, "after": first["next"]})
    assert [each["channel"] for each in rest["topics"]] == ["/t/c"]
    assert rest["next"] is None
    assert [each["channel"] for each in ask(client, {"list": "/t/x/y"})["topics"]] == ["/t/x/y"]
    assert ask(client, {"list": "/t/none"}) == {"topics": [], "next": None}


def test_a_list_looks_at_a_limited_number_of_channels_and_continues_after_the_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("holdfast.bayeux.services.topic_status.MOST_LOOKS", 2)
    client = server().client()
    for name in ("/t/a/1", "/t/b/1", "/t/b/2", "/t/c", "/t/d"):
        client.publish(name, 1)
    first = ask(client, {"list": "/t/*"})
    assert first == {"topics": [], "next": "/t/b/1"}
    rest = ask(client, {"list": "/t/*", "after": first["next"]})
    assert [each["channel"] for each in rest["topics"]] == ["/t/c"]


def test_an_erased_topic_is_gone_with_its_subscriptions() -> None:
    here = server()
    client = here.client()
    client.subscribe("/t/a")
    client.publish("/t/a", 1)
    assert ask(here.client(), {"erase": "/t/a"}) == {"erased": ["/t/a"], "next": None}
    assert here.bayeux.state.topics.get("/t/a") is None
    assert client.session.subscriptions == set()
    assert ask(here.client(), {"erase": "/t/a"}) == {"erased": [], "next": None}


def test_a_forced_erasure_of_a_pattern_ends_its_topics_and_discards_their_messages() -> None:
    here = server()
    waiting = here.client(ext={"delivery": True})
    waiting.subscribe("/t/**")
    sender = here.client()
    for name in ("/t/a", "/t/b"):
        sender.publish(name, 1)
    topics = here.bayeux.state.topics
    assert topics.states[TopicState.ALIVE] == 2
    answer = ask(sender, {"erase": "/t/*", "limit": 1, "forceDestroy": True})
    assert answer == {"erased": ["/t/a"], "next": "/t/a"}
    ask(sender, {"erase": "/t/*", "forceDestroy": True})
    assert len(topics) == 0
    assert [event["data"] for event in waiting.connect().events] == [None, None]
    assert here.balances()


KEPT = {"/t/**": ChannelSettings(topic=True, history=10)}


def test_the_service_answers_with_kept_messages_newest_first() -> None:
    here = server(channels=KEPT)
    sender = here.client()
    for n in range(3):
        sender.publish("/t/a", n)
    properties = {"channel": "/t/b", "data": 9, "ext": {"delivery": {"properties": {"k": 1}}}}
    sender.send(properties)
    (event,) = ask(sender, {"get": "/t/a"})["messages"]
    assert event["channel"] == "/t/a"
    assert event["data"] == 2
    told = event["ext"]["delivery"]
    assert told["id"] == f"test-{told['rcvTimestamp']}"
    assert told["sender"] == sender.session.name
    answer = ask(sender, {"get": "/t/a", "history": {"numEntries": -1}})
    assert [each["data"] for each in answer["messages"]] == [2, 1, 0]
    assert answer["complete"] is True
    answer = ask(sender, {"get": "/t/*", "history": {"numEntries": 2}, "limit": 2})
    assert [each["data"] for each in answer["messages"]] == [2, 1]
    assert answer["complete"] is False
    (event,) = ask(sender, {"get": "/t/b"})["messages"]
    assert event["ext"]["delivery"]["properties"] == {"k": 1}
    assert ask(sender, {"get": "/t/none"}) == {"messages": [], "complete": True}


def keeping(count: int, **options: Any) -> Server:
    here = server(**{"channels": KEPT, **options})
    for n in range(count):
        here.for_extensions.publish("/t/a", {"n": n})
    here.turn()
    return here


ALL = {"numEntries": -1}


def test_a_filter_selects_from_the_kept_messages() -> None:
    here = keeping(9)
    sender = here.client()
    asked = {"get": "/t/*", "history": ALL, "filter": "data.n > 5"}
    answer = ask(sender, asked)
    assert [each["data"]["n"] for each in answer["messages"]] == [8, 7, 6]
    assert answer["complete"] is True
    answer = ask(sender, {**asked, "limit": 2})
    assert [each["data"]["n"] for each in answer["messages"]] == [8, 7]
    assert answer["complete"] is False
    assert ask(sender, {**asked, "history": {"numEntries": 2}, "filter": "data.n = 6"}) == {
        "messages": [],
        "complete": True,
    }


@pytest.mark.parametrize("filter", [5, "data.n >"])
def test_an_invalid_filter_is_answered_with_the_reason(filter: object) -> None:
    answer = ask(keeping(1).client(), {"get": "/t/a", "filter": filter})
    assert answer["code"] == "user.illegalArgument"
    assert answer["message"].startswith("filter")


def test_a_filter_looks_at_a_limited_number_of_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.bayeux.services.history_search._MOST_MESSAGES", 4)
    answer = ask(keeping(9).client(), {"get": "/t/a", "history": ALL, "filter": "data.n < 6"})
    assert [each["data"]["n"] for each in answer["messages"]] == [5]
    assert answer["complete"] is False


def test_an_answer_has_a_limited_number_of_bytes() -> None:
    here = server(channels={"/t/a": ChannelSettings(history=10, history_bytes=4_000_000)})
    for _ in range(3):
        here.for_extensions.publish("/t/a", "x" * 600_000)
    answer = ask(here.client(), {"get": "/t/a", "history": ALL})
    assert len(answer["messages"]) == 1
    assert answer["complete"] is False


def test_a_filter_that_takes_long_runs_over_several_turns() -> None:
    here = keeping(5, is_turn_over=lambda: True)
    client = here.client()
    asked = {"get": "/t/a", "history": ALL, "filter": "data.n < 2"}
    begun = client.send({"channel": SERVICE, "data": asked})
    turns = 0
    while here.go_on():
        turns += 1
    # One for each of the messages, those that it selects, and the answer.
    assert turns >= 5
    (answer,) = answers_of(begun)
    assert [each["data"]["n"] for each in answer["messages"]] == [1, 0]


def test_a_client_that_loses_the_right_during_a_search_gets_no_messages() -> None:
    here = keeping(5, is_turn_over=lambda: True)
    client = here.client()
    begun = client.send({"channel": SERVICE, "data": {"get": "/t/a", "history": ALL}})
    client.session.identity.login = Login("joe", LoginMethod.PASSWORD)
    client.session.identity.grants = Granted(Operation.SUBSCRIBE)
    here.bayeux.state.rights.are_open = False
    here.turn()
    assert begun.reply["error"] == "403:denied_by_rights:history_denied"
    assert answers_of(begun) == []


@pytest.mark.interpreted
def test_messages_are_encoded_one_by_one_and_not_with_the_reply(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    here = keeping(9)

    def write_slowly(value: object) -> bytes:
        raise AssertionError(f"too deep for the fast encoder: {value}")

    monkeypatch.setattr(json_text, "_written_slowly", write_slowly)
    assert len(ask(here.client(), {"get": "/t/a", "history": ALL})["messages"]) == 9


def test_messages_that_a_filter_looks_at_count_against_the_budget() -> None:
    # The bucket pays for 100 messages, and the history has as many.
    deep = {"/t/a": ChannelSettings(history=100)}
    here = keeping(100, channels=deep, budget_requests=1)
    client = here.client(caller=Caller("203.0.113.7", network="203.0.113.7"))
    selected = {"get": "/t/a", "history": ALL, "filter": "data.n < 2"}
    assert len(ask(client, selected)["messages"]) == 2
    assert ask(client, selected) == {"error": "429:requests:budget_exceeded"}


def test_the_service_answers_with_no_more_messages_than_the_rule_keeps() -> None:
    depths = {"/t/none": 0, "/t/1": 1, "/t/2": 2, "/t/5": 5}
    rules = {name: ChannelSettings(history=depth) for name, depth in depths.items()}
    here = server(channels=rules)
    sender = here.client()
    for name in rules:
        for n in range(5):
            sender.publish(name, n)
    two = {"numEntries": 2}
    found = [len(ask(sender, {"get": name, "history": two})["messages"]) for name in rules]
    assert found == [0, 1, 2, 2]


def test_an_expired_message_is_not_in_the_answer() -> None:
    here = server(channels=KEPT)
    sender = here.client()
    life = {"ext": {"delivery": {"expiration": {"lifeTime": 1000}}}}
    sender.send({"channel": "/t/a", "data": 1, **life})
    assert len(ask(sender, {"get": "/t/a"})["messages"]) == 1
    here.advance(2)
    assert ask(here.client(), {"get": "/t/a"})["messages"] == []


def test_a_history_can_be_emptied_without_ending_the_topic() -> None:
    here = server(channels=KEPT)
    client = here.client()
    client.subscribe("/t/a")
    client.publish("/t/a", 1)
    answer = ask(client, {"erase": "/t/a", "history": {"numEntries": -1}})
    assert answer == {"emptied": ["/t/a"], "messages": 1}
    assert ask(client, {"state": "/t/a"})["state"] == "ALIVE"
    assert ask(client, {"get": "/t/a"})["messages"] == []


@pytest.mark.parametrize(
    "data",
    [
        {"get": "/t/a", "history": 5},
        {"get": "/t/a", "history": {"numEntries": -2}},
        {"get": "/t/a", "history": {"numEntries": "1"}},
        {"get": "/t/a", "history": {"newestFirst": True}},
        {"erase": "/t/a", "history": {"numEntries": 1}},
    ],
    ids=repr,
)
def test_an_invalid_history_option_is_answered_with_the_reason(data: Json) -> None:
    answer = ask(server().client(), data)
    assert answer["code"] == "user.illegalArgument"
    assert "history" in answer["message"]


class Granted:
    """What a login may do: these operations on channels below /t."""

    def __init__(self, *operations: Operation) -> None:
        self.operations = operations

    def allows(self, operation: Operation, channel: str) -> bool:
        is_service = channel == SERVICE and operation in (Operation.PUBLISH, Operation.CREATE)
        return is_service or (channel.startswith("/t/") and operation in self.operations)


def user(here: Server, *operations: Operation) -> Client:
    client = here.client()
    client.session.identity.login = Login("joe", LoginMethod.PASSWORD)
    client.session.identity.grants = Granted(*operations)
    return client


def test_reading_creating_and_erasing_topics_need_rights_of_their_own() -> None:
    here = server()
    here.client().publish("/t/a", 1)
    here.bayeux.state.rights.are_open = False
    reader, owner = user(here, Operation.SUBSCRIBE), user(here, Operation.ERASE)
    assert ask(reader, {"state": "/t/a"})["state"] == "UNREFERENCED"
    assert ask(reader, {"list": "/t/**"})["topics"]
    assert ask(reader, {"erase": "/t/a"})["error"] == "403:denied_by_rights:erase_denied"
    assert ask(owner, {"state": "/t/a"})["error"] == "403:denied_by_rights:subscribe_denied"
    assert ask(owner, {"list": "/t/**"})["error"] == "403:denied_by_rights:subscribe_denied"
    assert ask(owner, {"erase": "/t/a"})["erased"] == ["/t/a"]
    assert ask(reader, {"get": "/t/**"})["error"] == "403:denied_by_rights:history_denied"
    assert ask(user(here, Operation.HISTORY), {"get": "/t/a"})["error"].endswith("subscribe_denied")
    both = user(here, Operation.SUBSCRIBE, Operation.HISTORY)
    assert ask(both, {"get": "/t/**"}) == {"messages": [], "complete": True}
    sender = user(here, Operation.PUBLISH)
    qos = {"channel": "/t/a", "data": 1, "ext": {"delivery": {"topic": {}}}}
    refused = sender.send(qos).reply
    assert refused["error"] == "403:denied_by_rights:channel_create_denied"


class NoCreation(SecurityPolicy):
    """Denies the creation of channels."""

    def can_create(self, session: Session, channel: str, message: Json) -> Denial | None:
        return None if channel == SERVICE else Denial()


def test_a_policy_that_denies_creating_denies_erasing() -> None:
    here = server()
    here.bayeux.state.topics.configure(here.bayeux.state.topics.draft("/t/a", TopicConfig()))
    here.bayeux.state.rights.policy = NoCreation()
    answer = ask(here.client(), {"erase": "/t/a"})
    assert answer["error"] == "403:denied_by_security_policy:erase_denied"


def answers_of(asked: Any) -> list[Any]:
    return [each["data"] for each in asked.elements if "data" in each]


def test_an_erasure_of_many_topics_is_answered_after_several_turns() -> None:
    here = server(is_turn_over=lambda: True)
    client, names = here.client(), ["/t/a", "/t/b", "/t/c"]
    for name in names:
        client.publish(name, 1)
    here.turn()
    topics = here.bayeux.state.topics
    begun = client.send({"channel": SERVICE, "data": {"erase": "/t/*"}})
    for _ in range(10):
        assert here.go_on()
    last = topics.get("/t/c")
    assert last is not None
    # Another erasure is faster.
    here.bayeux.life.topics.erase(last, is_forced=False, now=here.now)
    assert begun.is_held
    for _ in range(6):
        here.turn()
    assert len(topics) == 0
    assert answers_of(begun) == [{"erased": names, "next": None}]


def test_a_request_to_empty_many_histories_is_answered_after_several_turns() -> None:
    here = server(channels=KEPT, is_turn_over=lambda: True)
    client, names = here.client(), ["/t/a", "/t/b"]
    for name in names:
        client.publish(name, 1)
    here.turn()
    begun = client.send(
        {"channel": SERVICE, "data": {"erase": "/t/*", "history": {"numEntries": -1}}}
    )
    histories = here.bayeux.state.hub.histories
    assert len(histories) == 1
    for _ in range(4):
        here.turn()
    assert len(histories) == 0
    emptied = {"emptied": names, "messages": 2}
    assert answers_of(begun) + answers_of(client.connect()) == [emptied]
