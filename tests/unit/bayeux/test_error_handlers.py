"""Error handlers of a server: whom it asks for which channel, and what holds where nobody is."""

from functools import partial
from typing import Any

from holdfast.bayeux.options import ChannelRule
from holdfast.delivery.dispatcher import Dispatcher
from holdfast.delivery.reactions import REFUSED_FOR_GOOD, Failure, ForMessage, ForRest, Reaction
from holdfast.extensions.ack import Ack
from holdfast.extensions.delivery_wire import DeliveryWire
from tests.unit.bayeux.harness import Client, House, Json

ERROR = "user.update.error"
THREE_TIMES = ChannelRule(attempts=3, backoff_s=1.0, longest_backoff_s=1.0)


class Handler:
    """Notes what it is asked, and says what it was told to say."""

    def __init__(self, reaction: Reaction | None = None) -> None:
        self._reaction = reaction
        self.asked: list[Failure] = []

    def react(self, failure: Failure, dispatcher: Dispatcher, now: float) -> Reaction | None:
        self.asked.append(failure)
        return self._reaction


def house_of(**options: Any) -> House:
    return House(DeliveryWire, partial(Ack, announces_batch=False), **options)


def receiver(house: House, channel: str = "/a/b", **terms: Any) -> Client:
    client = house.client(ext={"ack": True, "delivery": terms or True})
    client.connect(advice={"timeout": 0})
    client.subscribe(channel)
    return client


def refuse(house: House, client: Client, *numbers: int, channel: str = "/a/b") -> list[Any]:
    """Let these come and refuse the first one; what had come."""
    for number in numbers:
        house.server.publish(channel, number)
    return refuse_next(house, client)


def refuse_next(house: House, client: Client) -> list[Any]:
    """Refuse what comes first, work on the rest, and let a second pass."""
    events = client.connect(advice={"timeout": 0}).events
    verdict = {"seq": _seq(events[0]), "errorCode": ERROR, "message": "no"}
    ext: Json = {"delivery": {"verdicts": [verdict], "pending": list(map(_seq, events[1:]))}}
    client.connect(ext=ext, advice={"timeout": 0})
    house.advance(1.0)
    return [event["data"] for event in events]


def _seq(event: Json) -> int:
    found: int = event["ext"]["delivery"]["seq"]
    return found


def letters(house: House) -> list[Any]:
    return [letter.envelope()["content"] for letter in house.keeper.letters]


# What is plugged in


def test_who_is_plugged_in_decides_before_the_table_does() -> None:
    house = house_of()
    again = Reaction(ForMessage.STAYS, ForRest.STAYS, counts_redelivered=True, pause_s=0.5)
    house.bayeux.state.error_handlers.add("/a/b", Handler(again))
    client = receiver(house)
    refuse(house, client, 1)
    event = client.connect(advice={"timeout": 0}).events[0]
    assert (event["data"], event["ext"]["delivery"]["redelivered"]) == (1, 1)
    assert letters(house) == []


def test_it_is_told_what_was_said_of_which_message() -> None:
    house, handler = house_of(), Handler()
    house.bayeux.state.error_handlers.add("/**", handler)
    refuse(house, receiver(house), 1)
    [failure] = handler.asked
    assert (failure.code.text, failure.text, failure.channel) == (ERROR, "no", "/a/b")
    assert (failure.attempts, failure.by_client) == (1, True)


def test_it_is_told_of_a_message_on_which_nothing_was_said_in_time() -> None:
    house, handler = house_of(), Handler()
    house.bayeux.state.error_handlers.add("/a/*", handler)
    client = receiver(house, responseTimeout=1000, retries=1)
    house.server.publish("/a/b", 1)
    client.connect(advice={"timeout": 0})
    house.advance(1.5)
    [failure] = handler.asked
    assert (failure.code.text, failure.channel) == ("communication.responseTimeout", "/a/b")
    assert not failure.by_client


def test_the_most_exact_pattern_is_asked_first_and_one_opinion_is_enough() -> None:
    house = house_of()
    exact, wide, wider = Handler(), Handler(REFUSED_FOR_GOOD), Handler()
    for pattern, handler in (("/**", wider), ("/a/*", wide), ("/a/b", exact)):
        house.bayeux.state.error_handlers.add(pattern, handler)
    client = receiver(house)
    refuse(house, client, 1, 2)
    assert (len(exact.asked), len(wide.asked), len(wider.asked)) == (1, 1, 0)
    assert letters(house) == [1, 2]


def test_channels_of_no_pattern_are_left_to_the_table() -> None:
    house, handler = house_of(), Handler(REFUSED_FOR_GOOD)
    house.bayeux.state.error_handlers.add("/other/**", handler)
    client = receiver(house)
    refuse(house, client, 1, 2)
    assert (handler.asked, letters(house)) == ([], [1])


def test_a_handler_without_an_opinion_leaves_it_to_the_attempts_of_the_channel() -> None:
    house = house_of(channels={"/a/**": THREE_TIMES})
    house.bayeux.state.error_handlers.add("/a/**", Handler())
    client = receiver(house)
    refuse(house, client, 1)
    assert letters(house) == []
    assert refuse_next(house, client) == refuse_next(house, client) == [1]
    assert letters(house) == [1]


# Attempts, and what the session has chosen


def test_after_the_last_attempt_the_choice_of_the_session_holds() -> None:
    house = house_of(channels={"/a/**": THREE_TIMES})
    client = receiver(house, onUserException="dead")
    assert refuse(house, client, 1, 2) == [1, 2]
    assert letters(house) == []
    refuse_next(house, client)
    assert letters(house) == []
    refuse_next(house, client)
    assert letters(house) == [1, 2]
    house.server.publish("/a/b", 3)
    assert client.connect(advice={"timeout": 0}).data == []
    assert letters(house) == [1, 2, 3]


def test_sessions_of_one_channel_have_each_their_own_choice() -> None:
    house = house_of(channels={"/a/**": THREE_TIMES})
    dying, lasting = receiver(house, onUserException="dead"), receiver(house)
    for number in (1, 2):
        house.server.publish("/a/b", number)
    for client in (dying, lasting) * 3:
        refuse_next(house, client)
    assert letters(house) == [1, 2, 1]
    assert lasting.connect(advice={"timeout": 0}).data == [2]


def test_a_more_exact_rule_without_attempts_counts_alone() -> None:
    house = house_of(channels={"/a/**": THREE_TIMES, "/a/b": ChannelRule()})
    refuse(house, receiver(house), 1)
    assert letters(house) == [1]
