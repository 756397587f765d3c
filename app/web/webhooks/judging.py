"""What an answer to a webhook's call means for the message: the verdict of its receiver."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from http import HTTPStatus

from holdfast.bayeux.state.webhook_figures import CallOutcome
from holdfast.bayeux.wire.codec import Json
from holdfast.web.webhooks.posted_bodies import Body

# The longest pause that a receiver may ask for.
_LONGEST_PAUSE_S = 3600
_PAUSED = "communication.webhook"
_REFUSED = "user.webhook.refused"
_UNANSWERED = "user.webhook.unanswered"
_HELD = "user.update.holdback"


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a call, or why there is none."""

    # 0 without an answer.
    status: int
    text: str
    retry_after_s: float = 0.0


def outcome_of(answer: Answer, body: Body, delays: Sequence[int]) -> CallOutcome:
    """Return what the answer means for the message."""
    status = answer.status
    if HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
        return CallOutcome.DELIVERED
    if status == HTTPStatus.GONE:
        return CallOutcome.HELD
    is_passing = not status or status == HTTPStatus.TOO_MANY_REQUESTS or status // 100 == 5
    if not is_passing:
        return CallOutcome.REFUSED
    return CallOutcome.PAUSED if body.redelivered < len(delays) else CallOutcome.GIVEN_UP


def verdict_of(outcome: CallOutcome, answer: Answer, body: Body, delays: Sequence[int]) -> Json:
    """Return the verdict that brings the outcome about."""
    if outcome is CallOutcome.DELIVERED:
        return {"seq": body.seq, "state": "OK"}
    verdict: Json = {"seq": body.seq, "errorCode": _CODES[outcome], "message": answer.text}
    if outcome is CallOutcome.PAUSED:
        pause_ms = round(min(answer.retry_after_s, _LONGEST_PAUSE_S) * 1000)
        verdict["delay"] = max(delays[body.redelivered], pause_ms)
    return verdict


_CODES = {
    CallOutcome.PAUSED: _PAUSED,
    CallOutcome.REFUSED: _REFUSED,
    CallOutcome.GIVEN_UP: _UNANSWERED,
    CallOutcome.HELD: _HELD,
}


def seconds_until(retry_after: str | None, now_s: float) -> float:
    """Return how long to wait according to a `Retry-After` header: seconds or a date."""
    if retry_after is None:
        return 0.0
    if retry_after.isascii() and retry_after.isdigit():
        return float(retry_after[:10])
    try:
        at = parsedate_to_datetime(retry_after)
    except (ValueError, OverflowError):
        return 0.0
    return max((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() - now_s, 0.0)
