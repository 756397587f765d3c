"""What the client does next."""

from typing import Any

import pytest

from holdfast.client.pacing import Pacing, Step


def pacing(longest_pause_s: float = 8.0) -> Pacing:
    return Pacing(lambda: 1.0, longest_pause_s=longest_pause_s)


def reply(channel: str, successful: bool, **advice: Any) -> dict[str, Any]:
    return {"channel": f"/meta/{channel}", "successful": successful, "advice": advice}


def test_a_handshake_is_followed_by_a_connect_at_once() -> None:
    pace = pacing()
    assert pace.answered(reply("handshake", True, reconnect="retry", interval=500)) == 0.0
    assert pace.step is Step.CONNECT


def test_connects_follow_each_other_after_the_interval_that_the_server_asks_for() -> None:
    pace = pacing()
    assert pace.answered(reply("connect", True, reconnect="retry", interval=2000)) == 2.0
    assert pace.answered({"channel": "/meta/connect", "successful": True}) == 2.0


def test_an_unknown_client_handshakes_at_once_and_the_next_time_after_a_pause() -> None:
    pace = pacing()
    assert pace.answered(reply("connect", False, reconnect="handshake", interval=0)) == 0.0
    assert pace.step is Step.HANDSHAKE
    assert pace.answered(reply("handshake", False, reconnect="handshake", interval=0)) > 0.0


@pytest.mark.parametrize("channel", ["handshake", "connect"])
def test_a_client_that_is_advised_not_to_reconnect_stops(channel: str) -> None:
    pace = pacing()
    pace.answered(reply(channel, False, reconnect="none"))
    assert pace.step is Step.STOP


@pytest.mark.parametrize(
    ("channel", "step"), [("handshake", Step.STOP), ("connect", Step.HANDSHAKE)]
)
def test_a_denied_handshake_without_advice_is_final_and_a_failed_connect_is_not(
    channel: str, step: Step
) -> None:
    pace = pacing()
    pace.answered({"channel": f"/meta/{channel}", "successful": False})
    assert pace.step is step


def test_a_failed_handshake_is_repeated_if_the_advice_is_to_retry() -> None:
    pace = pacing()
    assert pace.answered(reply("handshake", False, reconnect="retry", interval=3000)) == 3.0
    assert pace.step is Step.HANDSHAKE


def test_pauses_double_up_to_the_longest_until_there_is_contact() -> None:
    pace = pacing(longest_pause_s=3.0)
    pauses = [pace.unanswered() for _ in range(6)]
    assert pauses == [0.5, 1.0, 2.0, 3.0, 3.0, 3.0]
    pace.answered(reply("connect", True))
    assert pace.unanswered() == 0.5


def test_no_pause_of_the_first_minute_is_longer_than_five_seconds() -> None:
    pace = pacing(longest_pause_s=30.0)
    for _ in range(2):
        pauses = [pace.unanswered() for _ in range(17)]
        assert pauses == [0.5, 1.0, 2.0, 4.0, *[5.0] * 11, 30.0, 30.0]
        pace.answered(reply("connect", True))


def test_pauses_are_random() -> None:
    assert Pacing(lambda: 0.25, longest_pause_s=8.0).unanswered() == 0.125


def test_the_advice_of_a_handshake_sets_the_timeout_and_the_max_interval() -> None:
    pace = pacing()
    pace.answered(reply("handshake", True, timeout=30_000, maxInterval=10_000))
    assert (pace.timeout_s, pace.max_interval_s) == (30.0, 10.0)


def test_malformed_advice_changes_nothing() -> None:
    pace = pacing()
    strange = {"timeout": "soon", "interval": -5, "reconnect": ["retry"], "maxInterval": None}
    assert pace.answered(reply("connect", True, **strange)) == 0.0
    assert pace.answered({"channel": "/meta/connect", "successful": True, "advice": 5}) == 0.0
    assert pace.step is Step.CONNECT
