"""Error handlers: which one the server asks about a channel, and what counts without one."""

from typing import Any

from holdfast.delivery.ports.error_handler import Failure, ForMessage, ForRest, Reaction
from holdfast.delivery.queues.dispatcher import Dispatcher
from holdfast.delivery.settling.reactions import REFUSED_FOR_GOOD
from holdfast.settings import ChannelSettings
from tests.unit.bayeux.harness import Client, Json, Server, server_of
from tests.unit.bayeux.operated_server import letters

ERROR = "user.update.error"
THREE_TIMES = ChannelSettings(attempts=3, backoff=1000, longest_backoff=1000)


class Handler:
    """Notes what it is asked, and reacts as the test wants."""

    def __init__(self, reaction: Reaction | None = None) -> None:
        self._reaction = reaction
        self.asked: list[Failure] = []

    def react(self, failure: Failure, dispatcher: Dispatcher, now: float) -> Reaction | None:
        self.asked.append(failure)
        return self._reaction


def receiver(server: Server, channel: str = "/a/b", **terms: Any) -> Client:
    client = server.client(ext={"ack": True, "delivery": terms or True})
    client.connect(advice={"timeout": 0})
    client.subscribe(channel)
    return client


def refuse(server: Server, client: Client, *numbers: int, channel: str = "/a/b") -> list[Any]:
    """Publish these and refuse the first one; return what was handed over."""
    for number in numbers:
        server.for_extensions.publish(channel, number)
    return refuse_next(server, client)


def refuse_next(server: Server, client: Client) -> list[Any]:
    """Refuse the first message, report the rest as pending, and let a second pass."""
    events = client.connect(advice={"timeout": 0}).events
    verdict = {"seq": _seq(events[0]), "errorCode": ERROR, "message": "no"}
    ext: Json = {"delivery": {"verdicts": [verdict], "pending": list(map(_seq, events[1:]))}}
    client.connect(ext=ext, advice={"timeout": 0})
    server.advance(1.0)
    return [event["data"] for event in events]


def _seq(event: Json) -> int:
    found: int = event["ext"]["delivery"]["seq"]
    return found


# Handlers


def test_what_is_behind_a_temporary_refusal_comes_again_even_if_a_handler_ends_its_message() -> (
    None
):
    server = server_of()
    gone = Reaction(ForMessage.DEAD, ForRest.FLOWS)
    server.bayeux.state.error_handlers.add("/a/b", Handler(gone))
    client = receiver(server)
    for number in (1, 2, 3, 4):
        server.for_extensions.publish("/a/b", number)
    reply = client.connect(advice={"timeout": 0})
    first, second, _, fourth = map(_seq, reply.events)
    verdicts = [
        {"seq": first, "state": "OK"},
        {"seq": second, "errorCode": "communication.busy", "message": "no"},
        {"seq": fourth, "state": "OK"},
    ]
    # The client has not begun with the third one: it expects it behind the second one.
    ext: Json = {"ack": reply.elements[-1]["ext"]["ack"], "delivery": {"verdicts": verdicts}}
    [event] = client.connect(ext=ext, advice={"timeout": 0}).events
    assert (event["data"], _seq(event) > fourth) == (3, True)
    assert "redelivered" not in event["ext"]["delivery"]
    assert letters(server) == [2]


def test_an_error_handler_decides_instead_of_the_table() -> None:
    server = server_of()
    again = Reaction(ForMessage.STAYS, ForRest.STAYS, counts_redelivered=True, pause_s=0.5)
    server.bayeux.state.error_handlers.add("/a/b", Handler(again))
    client = receiver(server)
    refuse(server, client, 1)
    event = client.connect(advice={"timeout": 0}).events[0]
    assert (event["data"], event["ext"]["delivery"]["redelivered"]) == (1, 1)
    assert letters(server) == []


def test_an_error_handler_gets_the_code_text_and_channel_of_a_refusal() -> None:
    server, handler = server_of(), Handler()
    server.bayeux.state.error_handlers.add("/**", handler)
    refuse(server, receiver(server), 1)
    [failure] = handler.asked
    assert (failure.code.text, failure.text, failure.channel) == (ERROR, "no", "/a/b")
    assert (failure.attempts, failure.by_client) == (1, True)


def test_an_error_handler_is_asked_about_a_response_timeout() -> None:
    server, handler = server_of(), Handler()
    server.bayeux.state.error_handlers.add("/a/*", handler)
    client = receiver(server, responseTimeout=1000, retries=1)
    server.for_extensions.publish("/a/b", 1)
    client.connect(advice={"timeout": 0})
    server.advance(1.5)
    [failure] = handler.asked
    assert (failure.code.text, failure.channel) == ("communication.responseTimeout", "/a/b")
    assert not failure.by_client


def test_handlers_are_asked_from_the_most_exact_pattern_on_until_one_decides() -> None:
    server = server_of()
    exact, wide, wider = Handler(), Handler(REFUSED_FOR_GOOD), Handler()
    for pattern, handler in (("/**", wider), ("/a/*", wide), ("/a/b", exact)):
        server.bayeux.state.error_handlers.add(pattern, handler)
    client = receiver(server)
    refuse(server, client, 1, 2)
    assert (len(exact.asked), len(wide.asked), len(wider.asked)) == (1, 1, 0)
    assert letters(server) == [1, 2]


def test_the_table_decides_on_channels_that_no_handlers_pattern_covers() -> None:
    server, handler = server_of(), Handler(REFUSED_FOR_GOOD)
    server.bayeux.state.error_handlers.add("/other/**", handler)
    client = receiver(server)
    refuse(server, client, 1, 2)
    assert (handler.asked, letters(server)) == ([], [1])


def test_the_attempts_of_the_channel_count_if_the_handler_has_no_opinion() -> None:
    server = server_of(channels={"/a/**": THREE_TIMES})
    server.bayeux.state.error_handlers.add("/a/**", Handler())
    client = receiver(server)
    refuse(server, client, 1)
    assert letters(server) == []
    assert refuse_next(server, client) == refuse_next(server, client) == [1]
    assert letters(server) == [1]


# Attempts, and the choice of the session


def test_the_choice_of_the_session_applies_after_the_last_attempt() -> None:
    server = server_of(channels={"/a/**": THREE_TIMES})
    client = receiver(server, onUserException="dead")
    assert refuse(server, client, 1, 2) == [1, 2]
    assert letters(server) == []
    refuse_next(server, client)
    assert letters(server) == []
    refuse_next(server, client)
    assert letters(server) == [1, 2]
    server.for_extensions.publish("/a/b", 3)
    assert client.connect(advice={"timeout": 0}).data == []
    assert letters(server) == [1, 2, 3]


def test_each_session_on_a_channel_has_its_own_choice() -> None:
    server = server_of(channels={"/a/**": THREE_TIMES})
    dying, lasting = receiver(server, onUserException="dead"), receiver(server)
    for number in (1, 2):
        server.for_extensions.publish("/a/b", number)
    for client in (dying, lasting) * 3:
        refuse_next(server, client)
    assert letters(server) == [1, 2, 1]
    assert lasting.connect(advice={"timeout": 0}).data == [2]


def test_a_more_exact_rule_without_attempts_overrides_one_with_attempts() -> None:
    server = server_of(channels={"/a/**": THREE_TIMES, "/a/b": ChannelSettings()})
    refuse(server, receiver(server), 1)
    assert letters(server) == [1]
