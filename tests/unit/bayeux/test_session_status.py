"""Since when a session has been in its state, and when it will expire."""

from collections.abc import Callable
from typing import Any

from holdfast.bayeux.session_status import expires_ms, last_seen_ms
from tests.unit.bayeux.desk import connect, house_of, receiver, value_of
from tests.unit.bayeux.harness import Client, House


def test_the_expiry_of_a_session_follows_from_when_it_was_last_seen() -> None:
    house = house_of(max_interval_s=10.0)
    plain, held, named = house.connected(), house.connected(), receiver(house)
    held.connect()
    house.advance(4.0)
    ends, seen = _relative(house, expires_ms), _relative(house, last_seen_ms)
    assert (ends(plain), seen(plain)) == (6000, -4000)
    assert (ends(held), seen(held)) == (None, 0)
    assert (ends(named), seen(named)) == (6000 + 86_400_000, -4000)
    named.disconnect()
    house.advance(1.0)
    assert (ends(named), seen(named)) == (86_400_000 - 1000, -1000)


def test_the_status_says_since_when_a_session_is_alive_or_polling() -> None:
    house = house_of(max_interval_s=10.0)
    client = receiver(house)

    def dates() -> tuple[str, str]:
        told = (value_of(house, f"client/joe/1/?{name}SinceDate") for name in ("alive", "polling"))
        alive, polling = told
        return alive, polling

    came, _ = dates()
    assert came == value_of(house, "client/joe/1/?loginDate")
    while value_of(house, "client/joe/1/?connectionState") == "ALIVE":
        house.advance(0.1)
    lost = value_of(house, "?serverTimestamp")
    house.advance(5.0)
    assert dates() == ("", lost)
    connect(client)
    house.advance(3.0)
    back, awaited = dates()
    assert awaited == ""
    assert came < lost < back < value_of(house, "?serverTimestamp")


def test_a_session_without_a_dispatcher_has_been_alive_since_its_login() -> None:
    house = house_of()
    session = house.connected().session
    house.advance(5.0)
    began = value_of(house, f"{session.name}/?loginDate")
    assert value_of(house, f"{session.name}/?aliveSinceDate") == began
    house.bayeux.life.hold_back(session, "disk full", "ann", house.now)
    house.advance(1.0)
    assert value_of(house, f"{session.name}/?aliveSinceDate") == began
    assert value_of(house, f"{session.name}/?pollingSinceDate") == ""


def _relative(
    house: House, look: Callable[[Any, Any, Any, float], int | None]
) -> Callable[[Client], int | None]:
    state = house.bayeux.state

    def ask_for(client: Client) -> int | None:
        found = look(state.options, state.node, client.session, house.now)
        return None if found is None else round((found - state.node.now_ms()) / 100) * 100

    return ask_for
