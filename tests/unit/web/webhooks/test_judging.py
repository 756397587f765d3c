"""The answer to a webhook's call decides what becomes of the message."""

import pytest

from holdfast.bayeux.state.webhook_figures import CallOutcome
from holdfast.web.webhooks.judging import Answer, outcome_of, seconds_until, verdict_of
from holdfast.web.webhooks.posted_bodies import Body

DELAYS = [5_000, 30_000]
D, P, R, G, H = (
    *(CallOutcome.DELIVERED, CallOutcome.PAUSED, CallOutcome.REFUSED),
    *(CallOutcome.GIVEN_UP, CallOutcome.HELD),
)


def body(redelivered: int = 0) -> Body:
    return Body("here-1", b"{}", 7, redelivered)


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        *((200, D), (202, D), (204, D), (299, D), (0, P), (429, P), (500, P), (503, P), (599, P)),
        *((100, R), (301, R), (304, R), (400, R), (401, R), (404, R), (408, R), (422, R), (410, H)),
    ],
)
def test_the_status_says_what_happens(status: int, outcome: CallOutcome) -> None:
    assert outcome_of(Answer(status, ""), body(), DELAYS) is outcome


def test_attempts_end_with_the_last_delay() -> None:
    answer = Answer(500, "500")
    outcomes = [outcome_of(answer, body(count), DELAYS) for count in range(4)]
    assert outcomes == [P, P, G, G]
    assert outcome_of(answer, body(), []) is G


@pytest.mark.parametrize(
    ("redelivered", "asked_s", "delay"),
    [(0, 0, 5_000), (1, 0, 30_000), (0, 7.5, 7_500), (0, 1e9, 3_600_000), (1, 20, 30_000)],
)
def test_a_pause_is_the_longer_of_the_settings_and_what_the_receiver_asks_for(
    redelivered: int, asked_s: float, delay: int
) -> None:
    answer = Answer(503, "503 Service Unavailable", asked_s)
    assert verdict_of(P, answer, body(redelivered), DELAYS) == {
        "seq": 7,
        "errorCode": "communication.webhook",
        "message": "503 Service Unavailable",
        "delay": delay,
    }


@pytest.mark.parametrize(
    ("outcome", "code"),
    [(R, "user.webhook.refused"), (G, "user.webhook.unanswered"), (H, "user.update.holdback")],
)
def test_other_failures_are_verdicts_of_the_receiver(outcome: CallOutcome, code: str) -> None:
    found = verdict_of(outcome, Answer(404, "404 Not Found"), body(9), DELAYS)
    assert found == {"seq": 7, "errorCode": code, "message": "404 Not Found"}
    assert verdict_of(D, Answer(200, "200 OK"), body(), DELAYS) == {"seq": 7, "state": "OK"}


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        *((None, 0), ("", 0), ("soon", 0), ("-5", 0), ("1.5", 0), ("120", 120)),
        *(("9" * 400, 9_999_999_999), ("Thu, 01 Jan 1970 00:00:05 GMT", 0)),
        ("Thu, 01 Jan 1970 00:05:00 GMT", 200),
    ],
)
def test_retry_after_is_seconds_or_a_date(text: str | None, seconds: float) -> None:
    assert seconds_until(text, 100.0) == seconds
