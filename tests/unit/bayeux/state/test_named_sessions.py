"""How many session names clients may have where no policy decides who may be which subject."""

import pytest

from holdfast.bayeux.rights import Denial, SecurityPolicy
from holdfast.bayeux.session import Session
from holdfast.bayeux.wire.caller import Caller
from holdfast.bayeux.wire.codec import Json
from tests.unit.bayeux.harness import Client
from tests.unit.bayeux.second_lives import RestartableServer, take

EXCEEDED = "403:user.configuration.maxSession,{}:sessions_exceeded"


def from_address(server: RestartableServer, network: str) -> Client:
    """Another client of the address, with another cookie."""
    return server.guest(caller=Caller(network, network))


def claim(client: Client, name: str) -> str:
    """Ask for a session name; the error, if there is one."""
    error: str = take(client, name=name).reply.get("error", "")
    client.server.turn()
    return error


def test_a_browser_may_have_a_limited_number_of_names_and_use_each_again() -> None:
    server = RestartableServer(max_names_per_browser=2)
    assert claim(server.guest(browser="b" * 32), "ann/1") == ""
    assert claim(server.guest(browser="b" * 32), "bob/1") == ""
    assert claim(server.guest(browser="b" * 32), "cid/1") == EXCEEDED.format("browser")
    assert claim(server.guest(browser="b" * 32), "ann/1") == ""
    assert claim(server.guest(browser="c" * 32), "cid/1") == ""


def test_an_address_may_have_a_limited_number_of_names_whatever_its_cookies() -> None:
    server = RestartableServer(max_names_per_address=2)
    assert claim(from_address(server, "192.0.2.1"), "ann/1") == ""
    assert claim(from_address(server, "192.0.2.1"), "bob/1") == ""
    assert claim(from_address(server, "192.0.2.1"), "cid/1") == EXCEEDED.format("address")
    assert claim(from_address(server, "192.0.2.1"), "ann/1") == ""
    assert claim(from_address(server, "192.0.2.2"), "cid/1") == ""


def test_callers_without_a_counted_address_may_have_any_number_of_names() -> None:
    server = RestartableServer(max_names_per_address=1)
    assert [claim(server.guest(), f"{name}/1") for name in ("ann", "bob", "cid")] == [""] * 3


def test_a_name_counts_for_its_last_owner_until_its_session_ends() -> None:
    server = RestartableServer(max_names_per_address=1)
    first, second = (from_address(server, address) for address in ("192.0.2.1", "192.0.2.2"))
    claim(first, "ann/1")
    claim(second, "ann/1")
    assert claim(from_address(server, "192.0.2.2"), "bob/1") == EXCEEDED.format("address")
    assert claim(first, "cid/1") == ""
    second.send({"channel": "/meta/disconnect", "ext": {"delivery": {"end": True}}})
    server.turn()
    assert claim(from_address(server, "192.0.2.2"), "bob/1") == ""
    names = server.bayeux.state.sessions.names
    assert names.of_network == {"192.0.2.1": 1, "192.0.2.2": 1}
    assert len(names.of_browser) == 2


def test_restored_names_count_for_their_browsers() -> None:
    server = RestartableServer(max_names_per_browser=1)
    claim(server.guest(browser="b" * 32), "ann/1")
    after = server.reborn()
    assert claim(after.guest(browser="b" * 32), "bob/1") == EXCEEDED.format("browser")
    assert claim(after.guest(browser="b" * 32), "ann/1") == ""


def test_a_name_that_was_refused_does_not_count_for_its_browser() -> None:
    server = RestartableServer(max_names_per_browser=1, max_sessions_per_subject=1)
    claim(server.guest(browser="c" * 32), "ann/1")
    assert claim(server.guest(browser="b" * 32), "ann/2").endswith(":sessions_exceeded")
    assert server.bayeux.state.sessions.names.of_browser == {"c" * 32: 1}


@pytest.mark.parametrize("hook", ["can_handshake", "can_claim"])
def test_names_are_not_limited_where_a_policy_decides_who_may_have_them(hook: str) -> None:
    def allows(*_: object) -> Denial | None:
        return None

    policy = type("Doorkeeper", (SecurityPolicy,), {hook: allows})()
    server = RestartableServer(max_names_per_browser=1, max_names_per_address=1)
    server.bayeux.state.rights.policy = policy
    for name in ("ann/1", "bob/1"):
        caller = Caller("192.0.2.1", "192.0.2.1")
        assert claim(server.guest(browser="b" * 32, caller=caller), name) == ""


class Generous(SecurityPolicy):
    """Allows some subjects a longer session timeout, and others a shorter one."""

    def longest_timeout_s(
        self, session: Session, subject: str, number: int, handshake: Json
    ) -> float | None:
        return {"ann": 7200.0, "bob": 60.0, "cid": float("inf"), "eve": 0.0}.get(subject)


@pytest.mark.parametrize(
    ("name", "wish_s", "given_s"),
    [
        ("ann/1", 10_000, 7200),
        ("ann/1", 0, 7200),
        ("bob/1", 10_000, 60),
        ("cid/1", 0, 0),
        ("dan/1", 10_000, 3600),
        # On the wire, zero would mean forever.
        ("eve/1", 0, 0.001),
    ],
)
def test_a_policy_decides_on_the_session_timeout_also_after_a_restart(
    name: str, wish_s: int, given_s: float
) -> None:
    server = RestartableServer(max_session_timeout=3_600_000)
    server.bayeux.state.rights.policy = Generous()
    client = server.guest()
    wanted = {"session": {"name": name, "timeout": wish_s * 1000}}
    told = client.handshake(ext={"delivery": wanted}).reply["ext"]["delivery"]["session"]
    assert told["timeout"] == given_s * 1000
    client.disconnect()
    server.turn()
    (session,) = server.reborn().bayeux.state.sessions
    assert session.terms is not None
    assert session.terms.timeout == given_s * 1000
