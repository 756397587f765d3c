"""All advice is complete, because clients replace their earlier advice with it."""

from typing import Any

import pytest

from holdfast.bayeux.advice import (
    milliseconds,
    multiple_clients_advice,
    reconnect_advice,
    session_advice,
)
from holdfast.settings import Settings
from tests.unit.bayeux.harness import Server

SHORT = Settings(timeout=20_000, interval=1500, max_interval=7000)
LONG = Settings(timeout=20_000, max_interval=7000, handshake_reconnect=True)


def test_times_on_the_wire_are_whole_milliseconds() -> None:
    assert milliseconds(0.0296) == 30
    assert isinstance(milliseconds(1.0), int)


def test_the_advice_of_a_session_has_its_own_timeout_and_current_interval() -> None:
    session = Server(timeout=20_000).client().session
    session.timeout_s, session.rest_interval_s = 3.0, 0.25
    assert session_advice(session, SHORT) == {
        "reconnect": "retry",
        "interval": 250,
        "timeout": 3000,
    }


def test_the_advice_for_a_client_without_a_session_says_how_to_reconnect_and_when() -> None:
    assert reconnect_advice(SHORT, "handshake", 1.25) == {
        "reconnect": "handshake",
        "interval": 1250,
        "timeout": 20000,
    }


@pytest.mark.parametrize(
    ("setting", "reconnect", "interval"),
    [(2000, "retry", 2000), (0, "none", 0), (-1000, "none", 0)],
)
def test_the_multiple_clients_advice_says_to_poll_or_to_stop(
    setting: int, reconnect: str, interval: int
) -> None:
    assert multiple_clients_advice(Settings(multi_session_interval=setting)) == {
        "reconnect": reconnect,
        "interval": interval,
        "timeout": 30000,
        "multiple-clients": True,
    }


def every_kind_of_advice(options: Settings) -> list[dict[str, Any]]:
    return [
        session_advice(Server().client().session, options),
        reconnect_advice(options, "none"),
        multiple_clients_advice(options),
    ]


def test_advice_has_the_max_interval_only_if_clients_should_handshake_by_themselves() -> None:
    assert all("maxInterval" not in advice for advice in every_kind_of_advice(SHORT))
    assert all(advice["maxInterval"] == 7000 for advice in every_kind_of_advice(LONG))
