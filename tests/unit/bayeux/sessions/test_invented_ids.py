"""Ids that this deployment never gave are refused at once, and their address pays for them."""

from collections.abc import Callable
from typing import Any

import pytest

from holdfast.bayeux.wire.caller import Caller
from holdfast.delivery.requests.reply_channels import ReplyChannel, reply_channel_of
from holdfast.extensions.delivery_wire import DeliveryWire
from holdfast.extensions.request import Request
from tests.unit.bayeux.harness import Client, Json, Server
from tests.unit.bayeux.second_lives import RestartableServer, named, take

INVENTED = "417AAAAAAAAAAAAAAAAAAAAAAAAAA"
FORMER = "0123456789abcdef0123456789abcdef"
OVER = "429:letters:budget_exceeded"
UNKNOWN = "402::session_unknown"
HERE = Caller("203.0.113.7", "203.0.113.7")


def server_of(letters: int = 1) -> Server:
    """Its buckets hold ten times the rate."""
    return Server(DeliveryWire, Request, budget_letters=letters)


def client_of(server: Server) -> Client:
    return server.client(caller=HERE, ext={"request": True})


def channel_of(client: Client) -> ReplyChannel:
    found = reply_channel_of(client.session)
    assert found is not None
    return found


def errors(ask: Callable[[], Json], count: int) -> list[str | None]:
    return [ask().get("error") for _ in range(count)]


def connecting(client: Client, id: Any) -> Callable[[], Json]:
    return lambda: client.connect(clientId=id, advice={"timeout": 0}).reply


@pytest.mark.parametrize("id", [INVENTED, FORMER, "", "ü", None, 7, ["a"]])
def test_invented_client_ids_are_charged_to_their_address(id: object) -> None:
    server = server_of()
    client = client_of(server)
    unknown = "402:send the clientId:client_id_missing" if id is None else UNKNOWN
    assert errors(connecting(client, id), 12) == [unknown] * 10 + [OVER] * 2
    assert connecting(client, id)()["advice"]["interval"] == 1000
    # Others are not affected, and neither is the client's own session.
    assert errors(connecting(server.guest(), id), 2) == [unknown] * 2
    assert connecting(client, client.client_id)()["successful"]


def test_an_unknown_connect_gets_the_advice_to_handshake_whatever_its_id() -> None:
    server = server_of()
    for id in (INVENTED, server.bayeux.state.client_ids.new()):
        reply = connecting(client_of(server), id)()
        assert (reply["error"], reply["advice"]["reconnect"]) == (UNKNOWN, "handshake")


def test_ids_of_sessions_that_have_ended_cost_nothing() -> None:
    server = server_of()
    client = client_of(server)
    client.disconnect()
    assert errors(connecting(client, client.client_id), 30) == [UNKNOWN] * 30


def test_ids_of_other_clients_and_of_clients_that_were_replaced_cost_nothing() -> None:
    server = server_of()
    first, second = client_of(server), server.guest(caller=HERE)
    take(first)
    replaced = first.client_id
    take(second)
    assert errors(connecting(second, replaced), 30) == [UNKNOWN] * 30
    assert errors(connecting(first, second.client_id), 30) == [UNKNOWN] * 30


def test_invented_reply_channels_are_charged_to_their_address() -> None:
    server = server_of()
    client = client_of(server)

    def reply() -> Json:
        return client.publish(f"/ret/{INVENTED}/4000001", 1).reply

    denied = f"403:/ret/{INVENTED}/4000001:reply_denied"
    assert errors(reply, 12) == [denied] * 10 + [OVER] * 2


def test_invented_reply_channels_of_requests_are_charged_to_their_address() -> None:
    server = server_of()
    client = client_of(server)

    def ask() -> Json:
        return client.publish("/a", 1, ext={"replyTo": f"/ret/{INVENTED}/4000001"}).reply

    assert errors(ask, 12) == ["403:replyTo:reply_denied"] * 10 + [OVER] * 2


def test_reply_channels_of_other_clients_cost_nothing() -> None:
    server = server_of()
    client, other = client_of(server), client_of(server)
    assert client.session.caller is HERE
    channel = channel_of(other).name

    def reply() -> Json:
        return client.publish(f"{channel}/4000001", 1).reply

    assert errors(reply, 30) == [f"403:{channel}/4000001:reply_denied"] * 30


def test_a_browser_with_an_invented_cookie_gets_another_and_its_address_pays() -> None:
    server = server_of()
    seen = []
    for _ in range(12):
        client = server.guest(caller=HERE)
        client.browser = INVENTED
        asked = client.handshake()
        seen.append(asked.exchange.new_browser)
        client.browser = asked.exchange.new_browser
        if client.client_id is not None:
            assert client.connect(advice={"timeout": 0}).reply["successful"]
    ids = server.bayeux.state.client_ids
    assert [browser is not None and ids.fits(browser) for browser in seen] == [True] * 10 + [
        False
    ] * 2


def test_a_browser_keeps_the_cookie_of_an_earlier_release_while_it_has_a_session() -> None:
    before = RestartableServer()
    client = named(before)
    client.session.identity.browser = client.browser = FORMER
    before.bayeux.life.owner.note(client.session, before.now)
    before.turn()
    server = before.reborn()
    again = server.guest()
    again.browser = FORMER
    assert take(again).exchange.new_browser is None
    assert again.session.identity.browser == FORMER
    stranger = server.guest()
    stranger.browser = FORMER[::-1]
    assert stranger.handshake().exchange.new_browser is not None


def test_the_ids_of_a_session_have_the_bucket_of_its_subject() -> None:
    server = server_of(0)
    ids = server.bayeux.state.client_ids
    client = server.client(ext={"delivery": {"session": "joe/1"}, "request": True})
    channel = channel_of(client)
    assert client.client_id is not None
    assert client.browser is not None
    found = {*map(ids.bucket_in, (channel.id, client.client_id, client.browser))}
    assert found == {ids.bucket_of("joe")}


def test_the_ids_of_a_session_without_a_subject_have_the_bucket_of_its_cookie() -> None:
    server = server_of(0)
    ids = server.bayeux.state.client_ids
    for browser in (None, ids.new(417)):
        client = server.client(ext={"request": True}, browser=browser)
        channel = channel_of(client)
        assert client.client_id is not None
        assert client.browser is not None
        found = {*map(ids.bucket_in, (channel.id, client.client_id, client.browser))}
        assert len(found) == 1
        assert browser is None or found == {417}
        # The other tabs of the browser stay together with this one.
        other = server.client(browser=client.browser)
        assert other.client_id is not None
        assert {ids.bucket_in(other.client_id)} == found
