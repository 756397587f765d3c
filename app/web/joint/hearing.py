"""What all shards together have answered, and which of them have not."""

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.web.admin.faults import RequestFailed
from holdfast.web.joint.asking import Answer, Json, NoAnswer

AWAY = "communication.noConnection"
_MISSING = 404


@dataclass(frozen=True, slots=True)
class Heard:
    """The answers of the shards that have something, by their numbers, and of which others not."""

    answers: dict[int, Json]
    unanswered: list[Json]

    @property
    def bodies(self) -> list[Json]:
        return [*self.answers.values()]


def heard(found: Sequence[Answer | NoAnswer]) -> Heard:
    """Sort answers. A shard that does not have the thing in question has said so.

    Raises `RequestFailed` if no shard has it.
    """
    good = {each.shard: each.json for each in found if isinstance(each, Answer) and _is_good(each)}
    bad = [each for each in found if not _is_good(each)]
    if good:
        unanswered = [unanswered_by(each) for each in bad if not _is_missing(each)]
        return Heard(good, unanswered)
    raise refusal(bad)


def refusal(found: Sequence[Answer | NoAnswer]) -> RequestFailed:
    """Return why no shard has done it: a fault counts for more than that one does not have it."""
    silent = [each for each in found if isinstance(each, NoAnswer)]
    answered = [each for each in found if isinstance(each, Answer)]
    for each in answered:
        if not _is_missing(each):
            return _refused(each)
    if silent or not answered:
        away = "; ".join(f"shard {each.shard}: {each.reason}" for each in silent)
        return RequestFailed(AWAY, f"{away}. No other shard has it" if answered else away)
    return _refused(answered[0])


def _refused(answer: Answer) -> RequestFailed:
    error = answer.json["error"]
    return RequestFailed(error["code"], error["message"], status=answer.status)


def unanswered_by(each: Answer | NoAnswer) -> Json:
    """Return which shard has not answered, and why."""
    reason = each.reason if isinstance(each, NoAnswer) else each.json["error"]["message"]
    return {"shard": each.shard, "reason": reason}


def _is_good(each: Answer | NoAnswer) -> bool:
    return isinstance(each, Answer) and each.status < 300


def _is_missing(each: Answer | NoAnswer) -> bool:
    return isinstance(each, Answer) and each.status == _MISSING
