"""Whatever the objects of a request are, each gets exactly one reply, and nothing breaks."""

import json
from functools import partial
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from holdfast.bayeux.rights import Vote
from holdfast.extensions.ack import Ack
from holdfast.extensions.timestamp import Timestamp
from holdfast.extensions.timesync import TimeSync
from tests.effort import TIMES
from tests.unit.bayeux.harness import Asked, Client, Json, Server, Socket, Wire
from tests.unit.bayeux.json_oracle import in_doubles

# Requests of a careless client

FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "channel": st.one_of(
            st.sampled_from(
                [
                    "/a",
                    "/a/*",
                    "/**",
                    "/service/a",
                    "/meta/connect",
                    "/meta/handshake",
                    "/meta/subscribe",
                    "/meta/unsubscribe",
                    "/meta/disconnect",
                    "/meta/foo",
                    "/a//b",
                ]
            ),
            st.text(max_size=3),
            st.none(),
            st.lists(st.integers(0, 1), max_size=1),
        ),
        "id": st.one_of(st.text("a1-", max_size=3), st.integers(-1, 3), st.floats(0, 1), st.none()),
        "clientId": st.sampled_from(["ALICE", "ALICE", "BOB", "GONE", "NULL", "NUMBER"]),
        "subscription": st.one_of(
            st.sampled_from(["/a", "/b", "/meta/x", "/service/x", "/a//b", "/**"]),
            st.lists(st.sampled_from(["/a", "/*", "/c", "/meta/y", ""]), max_size=3),
            st.none(),
            st.dictionaries(st.text(max_size=1), st.none(), max_size=1),
        ),
        "data": st.sampled_from([None, 1, "text", False]),
        "ext": st.one_of(
            st.none(),
            st.integers(-99, 99),
            st.dictionaries(st.sampled_from(["ack", "a"]), st.integers(-9, 9), max_size=2),
            st.text(max_size=2),
        ),
        "advice": st.one_of(
            st.none(),
            st.integers(-99, 99),
            st.fixed_dictionaries(
                {},
                optional={
                    "timeout": st.one_of(st.integers(-1, 99), st.just("1"), st.floats(-1, 1e308)),
                    "interval": st.one_of(st.integers(-1, 99), st.none(), st.floats(-1, 1e308)),
                },
            ),
        ),
        "supportedConnectionTypes": st.one_of(
            st.none(), st.just(["long-polling"]), st.lists(st.integers(0, 1), max_size=1)
        ),
        "successful": st.booleans(),
    },
)


# Requests of any JSON objects

SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**65), 2**65), st.floats(-1e300, 1e300), st.text()
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)
NAMES = ["channel", "id", "clientId", "subscription", "data", "ext", "advice", "connectionType"]
OBJECTS = st.one_of(
    st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=5),
    st.builds(
        lambda name, value: {"channel": "/meta/connect", "clientId": "ALICE", name: value},
        st.sampled_from(["ext", "advice", "id"]),
        VALUES,
    ),
    st.builds(
        lambda key, value: {"channel": "/a", "data": 1, "clientId": "ALICE", "ext": {key: value}},
        st.sampled_from(["ack", "timesync", "authentication", "other"]),
        VALUES,
    ),
)


def busy_server() -> Server:
    """A server with all extensions, an authorizer and a service."""
    server = Server(
        partial(Ack, announces_batch=True),
        TimeSync(lambda: 1_000_000),
        Timestamp(lambda: 1_000_000),
        allow_message_delivery_during_handshake=True,
    )
    server.bayeux.state.rights.add("/b", lambda *_: Vote.IGNORE)
    server.bayeux.state.services.add("/service/*", lambda call: call.answer(call.data))
    return server


class Conversation:
    """Requests of alice, some of which may be held; it checks each answer when it comes."""

    def __init__(self, server: Server) -> None:
        self.server = server
        ext = {"ack": True, "timesync": {"tc": 1, "l": 0, "o": 0}}
        self.alice, self.bob = server.connected(ext=ext), server.connected()
        # Kept for when it is gone.
        self._session = self.alice.session
        self._held: list[tuple[Asked, list[Json]]] = []

    def ask(self, messages: list[Json]) -> None:
        wire = Wire()
        sent = addressed(messages, self.alice, self.bob)
        asked = self.alice.send_bytes(json.dumps(sent).encode(), wire=wire)
        self.server.turn()
        if asked.is_held:
            self._held.append((asked, sent))
        else:
            check_replies(asked.elements, sent)

    def ask_over_socket(self, messages: list[Json]) -> None:
        socket = Socket()
        sent = addressed(messages, self.alice, self.bob)
        body = json.dumps(sent).encode()
        exchange = self.server.receive_over(socket, body, self.alice.browser)
        if self._session.held_connect is not exchange:
            check_replies(socket.take(), sent)
        self.server.turn()
        self.server.close(socket)

    def end(self) -> None:
        self.server.advance(31.0)
        for asked, sent in self._held:
            check_replies(asked.elements, sent)
        assert self.server.balances()


def written(value: object) -> str:
    return json.dumps(value, sort_keys=True)


def addressed(messages: list[Json], alice: Client, bob: Client) -> list[Json]:
    """The messages with real client ids."""
    ids = {"ALICE": alice.client_id, "BOB": bob.client_id, "GONE": "0" * 32, "NUMBER": 1}
    sent = []
    for message in messages:
        client_id = message.get("clientId")
        known = ids.get(client_id) if isinstance(client_id, str) else client_id
        sent.append(message | {"clientId": known} if "clientId" in message else message)
    return sent


def check_replies(elements: list[Json], messages: list[Json]) -> None:
    messages = in_doubles(json.loads(json.dumps(messages)))
    # Answers of services are successful, too, but have data.
    replies = [e for e in elements if "successful" in e and "data" not in e]
    assert len(replies) == len(messages)
    if any(message.get("channel") == "/meta/handshake" for message in messages):
        # Its reply comes first.
        messages = sorted(messages, key=lambda m: m.get("channel") != "/meta/handshake")
        replies = sorted(replies, key=lambda r: r.get("channel") != "/meta/handshake")
    for message, reply in zip(messages, replies, strict=True):
        check_reply(message, reply)


def check_reply(message: Json, reply: Json) -> None:
    if isinstance(message.get("channel"), str):
        assert reply["channel"] == message["channel"]
    if type(message.get("id")) in (str, int, float):
        assert reply["id"] == str(message["id"])
    if message.get("subscription") is not None:
        assert written(reply["subscription"]) == written(message["subscription"])
    assert ("error" in reply) is not reply["successful"]
    is_welcome = reply.get("channel") == "/meta/handshake" and reply["successful"]
    assert ("clientId" in reply) is is_welcome
    advice = reply.get("advice")
    assert advice is None or {"reconnect", "interval", "timeout"} <= advice.keys()


REQUESTS = st.lists(FIELDS, min_size=1, max_size=4)


@pytest.mark.slow
@given(requests=st.lists(st.tuples(REQUESTS, st.booleans()), min_size=1, max_size=4))
@settings(max_examples=20 * TIMES)
def test_every_message_gets_exactly_one_reply_with_its_channel_id_and_subscription(
    requests: list[tuple[list[Json], bool]],
) -> None:
    conversation = Conversation(busy_server())
    for messages, over_socket in requests:
        if over_socket:
            conversation.ask_over_socket(messages)
        else:
            conversation.ask(messages)
    conversation.end()


@pytest.mark.slow
@given(messages=st.lists(OBJECTS, min_size=1, max_size=4))
@example([{"channel": None, "id": -(2**63) - 1, "subscription": 2**64}])
@settings(max_examples=20 * TIMES)
def test_every_json_object_gets_exactly_one_reply(
    messages: list[Json],
) -> None:
    conversation = Conversation(busy_server())
    conversation.ask(messages)
    conversation.end()
