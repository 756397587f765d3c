"""The error of an operation that a client may not do does not depend on what others have done."""

from collections.abc import Callable, Iterator
from itertools import combinations

import pytest

from holdfast.bayeux.wire.operation import Operation
from holdfast.delivery.requests.reply_channels import reply_channel_of
from holdfast.extensions.request import Request
from holdfast.settings import ChannelSettings
from tests.unit.bayeux.harness import Client, Json, Server, server_of

# Others subscribe to the first, and published on it; the second has never been used.
KNOWN, UNKNOWN = "/rooms/known", "/rooms/unknown"
RULES = {"/rooms/**": ChannelSettings(presence=True, history=5)}


class Granted:
    """The rights of a login: some operations in the rooms, and the use of all services."""

    def __init__(self, operations: frozenset[Operation]) -> None:
        self._operations = operations

    def allows(self, operation: Operation, channel: str) -> bool:
        if channel.startswith("/service/") and channel != "/service/ptp":
            return operation in (Operation.PUBLISH, Operation.CREATE)
        return operation in self._operations


def house() -> Server:
    """A server on which others use one room; the other is unused."""
    server = server_of(Request, channels=RULES)
    other = server.client()
    other.subscribe(KNOWN)
    other.publish(KNOWN, 1, ext={"delivery": {"topic": {}}})
    server.turn()
    server.bayeux.state.rights.require_login()
    return server


def sets_without(operation: Operation) -> Iterator[frozenset[Operation]]:
    """Yield every set of rights that lacks this one."""
    others = [each for each in Operation if each is not operation]
    for size in range(len(others) + 1):
        yield from map(frozenset, combinations(others, size))


def subscribe(channel: str, **ext: object) -> Json:
    return {"channel": "/meta/subscribe", "subscription": channel, "ext": ext}


def delivery(channel: str, **options: object) -> Json:
    return {"channel": channel, "data": 1, "ext": {"delivery": options}}


def topics(**data: object) -> Json:
    return {"channel": "/service/topics", "data": data}


Way = Callable[[Client, str], Json]


# Every way to do each operation.
WAYS: dict[str, tuple[Operation, Way]] = {
    "configure": (Operation.CREATE, lambda _, name: delivery(name, topic={})),
    "subscribe": (Operation.SUBSCRIBE, lambda _, name: subscribe(name)),
    "subscribe below": (Operation.SUBSCRIBE, lambda _, name: subscribe(name + "/**")),
    "look at the topic": (Operation.SUBSCRIBE, lambda _, name: topics(state=name)),
    "list topics": (Operation.SUBSCRIBE, lambda _, name: topics(list=name)),
    "publish": (Operation.PUBLISH, lambda _, name: {"channel": name, "data": 1}),
    "call": (Operation.PUBLISH, lambda _, name: {"channel": "/service" + name, "data": 1}),
    "address": (Operation.PTP, lambda _, name: delivery(name, destinations=[{"name": "joe"}])),
    "request": (Operation.REQUEST, lambda client, name: request(client, name)),
    "call, too": (Operation.REQUEST, lambda _, name: {"channel": "/service" + name, "data": 1}),
    "subscribe with a history": (
        Operation.HISTORY,
        lambda _, name: subscribe(name, delivery={"history": {"numEntries": 1}}),
    ),
    "get a history": (Operation.HISTORY, lambda _, name: topics(get=name)),
    "replay": (Operation.REPLAY, lambda _, name: subscribe(name, replay=-2)),
    "replay below a pattern": (
        Operation.REPLAY,
        lambda _, name: subscribe("/rooms/**", replay={name: -2}),
    ),
    "erase": (Operation.ERASE, lambda _, name: topics(erase=name)),
    "empty": (Operation.ERASE, lambda _, name: topics(erase=name, history={"numEntries": -1})),
    "see who is there": (
        Operation.PRESENCE,
        lambda _, name: {"channel": "/service/presence", "data": {"channel": name}},
    ),
    "watch who is there": (Operation.PRESENCE, lambda _, name: subscribe("/sys/presence" + name)),
}


def request(client: Client, name: str) -> Json:
    own = reply_channel_of(client.session)
    assert own is not None
    return {"channel": name, "data": 1, "ext": {"replyTo": f"{own.name}/4000001"}}


def test_every_operation_is_tried() -> None:
    assert {operation for operation, _ in WAYS.values()} == set(Operation)


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_without_the_right_the_error_is_the_same_for_a_channel_that_others_use_and_for_another(
    way: str,
) -> None:
    operation, message_for = WAYS[way]
    server = house()
    client = server.client(ext={"request": True})
    for granted in sets_without(operation):
        client.session.identity.grants = Granted(granted)
        errors = []
        for name in (KNOWN, UNKNOWN):
            asked = client.send(message_for(client, name))
            errors.append(asked.reply["error"])
        assert errors[0] == errors[1], granted
        assert errors[0].startswith("403:denied_by_rights:"), granted


@pytest.mark.parametrize(
    "granted", [frozenset(), frozenset({Operation.PUBLISH}), frozenset(Operation)], ids=len
)
def test_an_unsubscribe_is_answered_alike_whoever_else_has_subscribed(
    granted: frozenset[Operation],
) -> None:
    server = house()
    client = server.client()
    client.session.identity.grants = Granted(granted)
    for name in (KNOWN, UNKNOWN):
        assert client.unsubscribe(name).reply["error"] == "400::channel_missing"


def test_the_right_to_create_is_needed_only_where_nobody_subscribes() -> None:
    server = house()
    client = server.client()
    client.session.identity.grants = Granted(frozenset({Operation.SUBSCRIBE, Operation.PUBLISH}))
    assert client.publish(KNOWN, 1).reply["successful"]
    assert client.subscribe(KNOWN).reply["successful"]
    assert client.subscribe(UNKNOWN).reply["error"] == "403:denied_by_rights:create_denied"
    refused = client.publish(UNKNOWN, 1).reply["error"]
    assert refused == "403:denied_by_rights:channel_create_denied"
