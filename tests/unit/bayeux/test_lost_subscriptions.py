"""Subscriptions that end while the client of a named session is away: it learns of them."""

import pytest

from holdfast.delivery.messages.storing import PersistOutcome
from holdfast.settings import ChannelSettings
from tests.unit.bayeux.harness import Client, Json, Server
from tests.unit.bayeux.second_lives import RestartableServer, again, batch, connect, take

NAME = "/topic/a"
RULE = {"/topic/**": ChannelSettings(topic=True)}


def server() -> RestartableServer:
    return RestartableServer(channels=RULE)


def joe_subscribes(server: Server, *patterns: str, **qos: object) -> Client:
    client = server.guest()
    take(client)
    connect(client, 0)
    for pattern in patterns:
        client.send(
            {"channel": "/meta/subscribe", "subscription": pattern, "ext": {"delivery": qos}}
        )
    server.turn()
    return client


def leave(client: Client) -> None:
    client.send({"channel": "/meta/disconnect"})
    client.server.turn()


def erase(server: Server, name: str = NAME) -> None:
    topic = server.bayeux.state.topics.get(name)
    assert topic is not None
    server.bayeux.life.topics.erase(topic, is_forced=False, now=server.now)
    server.turn()


def returns(client: Client) -> Json:
    """What the reply to the client's next handshake says in `ext.delivery`."""
    asked = take(client)
    client.server.turn()
    agreed: Json = asked.reply["ext"]["delivery"]
    assert agreed["resumed"]
    return agreed


def lost(agreed: Json) -> list[str]:
    found: list[str] = agreed.get("lostSubscriptions", [])
    return found


@pytest.mark.parametrize("is_reborn", [False, True])
def test_the_end_of_a_topic_reaches_a_session_that_was_away(*, is_reborn: bool) -> None:
    here = server()
    joe = joe_subscribes(here, NAME, "/topic/b")
    leave(joe)
    erase(here)
    here = here.reborn() if is_reborn else here
    joe = again(joe, here)
    agreed = returns(joe)
    assert (lost(agreed), agreed["waiting"]) == ([NAME], 1)
    first = connect(joe, 0)
    (event,) = first.events
    assert (event["channel"], event["data"]) == (NAME, None)
    assert event["ext"]["delivery"]["state"] == "ERASED"
    assert event["ext"]["delivery"]["subscription"] == NAME
    assert joe.session.subscriptions == {"/topic/b"}
    assert connect(joe, batch(first)).events == []
    assert lost(returns(joe)) == []
    assert here.balances()


def test_the_end_of_a_topic_reaches_a_session_that_has_a_pattern_for_it() -> None:
    here = server()
    joe = joe_subscribes(here, "/topic/*", NAME)
    leave(joe)
    erase(here)
    here = here.reborn()
    joe = again(joe, here)
    assert lost(returns(joe)) == [NAME]
    (event,) = connect(joe, 0).events
    assert event["ext"]["delivery"]["state"] == "ERASED"
    assert event["ext"]["delivery"]["subscription"] == "/topic/*"


def test_the_news_that_a_topic_has_ended_is_no_message_of_it_after_a_restart() -> None:
    here = server()
    leave(joe_subscribes(here, NAME))
    erase(here)
    here = here.reborn()
    assert here.bayeux.state.topics.get(NAME) is None
    assert here.store.topics == {}


def test_the_reply_to_a_handshake_lists_lost_subscriptions_until_its_client_connects() -> None:
    here = server()
    joe = joe_subscribes(here, NAME)
    leave(joe)
    erase(here)
    assert lost(returns(joe)) == [NAME]
    here = here.reborn()
    joe = again(joe, here)
    assert lost(returns(joe)) == [NAME]
    connect(joe, 0)
    here = here.reborn()
    assert lost(returns(again(joe, here))) == []


def test_a_client_that_was_there_is_told_with_its_next_handshake() -> None:
    here = server()
    joe = joe_subscribes(here, NAME, notify=False)
    erase(here)
    # This connect follows no handshake that said it.
    connect(joe, 0)
    here = here.reborn()
    joe = again(joe, here)
    assert lost(returns(joe)) == [NAME]
    connect(joe, 0)
    connect(joe, 0)
    assert lost(returns(joe)) == []


def test_what_ends_between_the_reply_and_the_first_connect_is_told_next_time() -> None:
    here = server()
    joe = joe_subscribes(here, NAME, "/topic/b")
    leave(joe)
    erase(here)
    assert lost(returns(joe)) == [NAME]
    erase(here, "/topic/b")
    connect(joe, 0)
    assert lost(returns(joe)) == ["/topic/b"]


def test_a_subscription_that_the_client_has_again_is_not_listed_as_lost() -> None:
    here = server()
    joe = joe_subscribes(here, NAME)
    leave(joe)
    erase(here)
    returns(joe)
    joe.subscribe(NAME)
    here.turn()
    assert lost(returns(joe)) == []


def test_a_subscription_that_its_client_ended_is_not_listed_as_lost() -> None:
    here = server()
    joe = joe_subscribes(here, NAME)
    joe.send({"channel": "/meta/unsubscribe", "subscription": NAME})
    here.turn()
    assert lost(returns(joe)) == []


def test_a_lost_subscription_is_listed_although_its_client_wants_no_news_of_topics() -> None:
    here = server()
    joe = joe_subscribes(here, NAME, notify=False)
    leave(joe)
    erase(here)
    agreed = returns(joe)
    assert (lost(agreed), agreed["waiting"]) == ([NAME], 0)


def test_who_is_there_learns_of_the_end_of_a_topic_that_the_store_cannot_take() -> None:
    here = server()
    joe = joe_subscribes(here, NAME)
    here.store.outcome = PersistOutcome.REFUSED
    erase(here)
    (event,) = connect(joe, 0).events
    assert event["ext"]["delivery"]["state"] == "ERASED"
    assert here.balances()


def test_who_is_there_learns_of_the_end_of_a_topic_while_the_store_is_away() -> None:
    here = server()
    joe = joe_subscribes(here, NAME)
    ann = here.guest()
    ann.handshake(ext={"delivery": True})
    ann.subscribe(NAME)
    here.store.is_available = False
    erase(here)
    (event,) = ann.connect(advice={"timeout": 0}).events
    assert event["ext"]["delivery"]["state"] == "ERASED"
    here.store.is_available = True
    here.turn()
    (event,) = connect(joe, 0).events
    assert event["ext"]["delivery"]["state"] == "ERASED"


@pytest.mark.parametrize("outcome", [PersistOutcome.KEPT, PersistOutcome.REFUSED])
def test_who_is_there_learns_of_the_end_of_a_topic_whose_fate_was_unknown(
    outcome: PersistOutcome,
) -> None:
    here = server()
    joe = joe_subscribes(here, NAME)
    here.store.is_silent, here.store.outcome = True, outcome
    erase(here)
    for each in (PersistOutcome.UNKNOWN, outcome):
        here.store.answer_late(each)
    here.turn()
    (event,) = connect(joe, 0).events
    assert event["ext"]["delivery"]["state"] == "ERASED"
    assert here.balances()


def test_the_list_of_lost_subscriptions_is_bounded() -> None:
    here = RestartableServer(channels=RULE, max_subscriptions=2)
    joe = joe_subscribes(here)
    for number in range(4):
        name = f"/topic/{number}"
        joe.subscribe(name)
        here.turn()
        erase(here, name)
    assert lost(returns(joe)) == ["/topic/2", "/topic/3"]
