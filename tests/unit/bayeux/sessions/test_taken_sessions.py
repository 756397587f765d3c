"""A client learns that another one has taken its session. Others learn nothing."""

import pytest

from holdfast.bayeux.state.changed_session import stored_form
from tests.unit.bayeux.harness import Client, Json, Socket
from tests.unit.bayeux.second_lives import RestartableServer, take

TAKEN = "402::session_taken"
UNKNOWN = "402::session_unknown"
NO_COOKIE = "402:send the cookie:cookie_missing"


def taken(browser: str = "mine") -> tuple[RestartableServer, Client, Client]:
    """A server, the client that had the session, and the one that has it."""
    server = RestartableServer()
    former, present = server.guest(browser=browser), server.guest(browser="other")
    take(former)
    take(present)
    return server, former, present


def again(server: RestartableServer, client: Client, browser: str | None) -> Json:
    """The reply to the client's next connect, from this browser."""
    asking = server.guest(browser=browser)
    asking.client_id = client.client_id
    return asking.connect(advice={"timeout": 0}).reply


def test_a_held_connect_is_answered_when_the_session_is_taken() -> None:
    server = RestartableServer()
    former = server.guest(browser="mine")
    take(former)
    former.connect()
    held = former.connect()
    take(server.guest(browser="other"))
    [reply] = held.elements
    assert (reply["error"], reply["advice"]["reconnect"]) == (TAKEN, "none")


def test_each_message_of_the_former_client_is_told_so() -> None:
    _, former, _ = taken()
    for reply in (former.connect().reply, former.publish("/a", 1).reply):
        assert (reply["error"], reply["advice"]["reconnect"]) == (TAKEN, "none")


@pytest.mark.parametrize(("browser", "error"), [("thief", UNKNOWN), (None, NO_COOKIE)])
def test_others_learn_the_same_of_living_former_and_unused_ids(
    browser: str | None, error: str
) -> None:
    server, former, present = taken()
    unused = server.guest()
    unused.client_id = server.bayeux.state.client_ids.new()
    replies = [again(server, each, browser) for each in (former, present, unused)]
    assert {reply["error"] for reply in replies} == {error}
    assert {reply["advice"]["reconnect"] for reply in replies} == {"handshake"}


def test_the_browser_that_has_the_session_now_learns_nothing_of_the_one_before() -> None:
    server, former, _ = taken()
    assert again(server, former, "other")["error"] == UNKNOWN


def test_of_two_tabs_the_one_that_had_it_is_told() -> None:
    server = RestartableServer()
    first, second = server.guest(browser="shared"), server.guest(browser="shared")
    take(first)
    take(second)
    assert first.connect().reply["error"] == TAKEN
    assert second.connect().reply["successful"]


def test_a_program_without_cookies_is_told_over_its_next_socket_alone() -> None:
    server = RestartableServer()

    def on_new_socket() -> Client:
        browser = server.bayeux.state.client_ids.new()
        return server.guest(browser=browser, socket=Socket(), is_cookieless=True)

    former = on_new_socket()
    take(former)
    former.client_id = former.hear()[0]["clientId"]
    take(server.guest(browser="other"))
    back = on_new_socket()
    back.client_id = former.client_id
    assert back.connect().replies[-1]["error"] == TAKEN
    page = server.guest(browser="page", socket=Socket())
    page.client_id = former.client_id
    assert page.connect().replies[-1]["error"] == UNKNOWN


def test_the_former_client_is_told_behind_a_kill() -> None:
    server, former, present = taken()
    server.turn()
    second = server.reborn()
    assert again(second, former, "mine")["error"] == TAKEN
    assert again(second, former, "thief")["error"] == UNKNOWN
    assert again(second, present, "other")["successful"]


def test_the_record_of_a_session_has_the_client_before_and_no_earlier_one() -> None:
    server, former, present = taken()
    session = present.session
    assert stored_form(session, 0).taken_from == [former.client_id, "mine"]
    had_it = present.client_id
    take(server.guest(browser="third"))
    assert stored_form(session, 0).taken_from == [had_it, "other"]


def test_a_client_that_leaves_its_session_is_not_told_that_it_was_taken() -> None:
    server = RestartableServer()
    client = server.guest(browser="mine")
    take(client)
    client.disconnect()
    assert again(server, client, "mine")["error"] == UNKNOWN
