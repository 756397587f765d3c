"""What all shards together have answered, and which of them have not."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeGuard

from holdfast.web.admin.faults import RequestFailed
from holdfast.web.joint.asking import Answer, Json, NoAnswer

AWAY = "communication.noConnection"
_MISSING = 404

Found = Sequence[Answer | NoAnswer]


@dataclass(frozen=True, slots=True)
class Heard:
    """What shards have answered, at least one of which has something."""

    found: Found

    @property
    def answers(self) -> dict[int, Json]:
        """The answers of the shards that have something, by their numbers."""
        return {each.shard: each.json for each in self.found if has_it(each)}

    @property
    def bodies(self) -> list[Json]:
        return [*self.answers.values()]

    @property
    def missing(self) -> dict[int, str]:
        """The states of the shards that have not answered."""
        bad = (each for each in self.found if not has_it(each))
        return {each.shard: "away" if _is_away(each) else "silent" for each in bad}

    def whole(self, answer: Json) -> Json:
        """Return the joint answer with the shards that are not in it.

        A change may have no other answer.
        """
        bad = (each for each in self.found if not has_it(each) and not _is_missing(each))
        unanswered = [{"shard": each.shard, "reason": _reason(each)} for each in bad]
        return {**answer, "unanswered": unanswered} if answer or unanswered else answer


def heard(found: Found) -> Heard:
    """Return answers. A shard that does not have the thing in question has said so.

    Raises `RequestFailed` if no shard has it.
    """
    if not any(map(has_it, found)):
        raise refusal(found)
    return Heard(found)


def refusal(found: Found) -> RequestFailed:
    """Return why no shard has done it: a fault counts for more than that one does not have it."""
    silent = [each for each in found if isinstance(each, NoAnswer)]
    answered = [each for each in found if isinstance(each, Answer)]
    faults = [each for each in answered if not _is_missing(each)]
    if silent and not faults:
        away = "; ".join(f"shard {each.shard}: {each.reason}" for each in silent)
        return RequestFailed(AWAY, f"{away}. No other shard has it" if answered else away)
    answer = [*faults, *answered][0]
    error = answer.json["error"]
    return RequestFailed(error["code"], error["message"], status=answer.status)


def has_it(each: Answer | NoAnswer) -> TypeGuard[Answer]:
    """Return whether a shard has answered with what was asked for."""
    return isinstance(each, Answer) and each.status < 300


def _is_missing(each: Answer | NoAnswer) -> bool:
    return isinstance(each, Answer) and each.status == _MISSING


def _is_away(each: Answer | NoAnswer) -> bool:
    return isinstance(each, NoAnswer) and not each.is_silent


def _reason(each: Answer | NoAnswer) -> str:
    return each.reason if isinstance(each, NoAnswer) else str(each.json["error"]["message"])
