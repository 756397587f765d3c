"""Views of dead letters, of groups of them and of replays."""

from dataclasses import dataclass
from typing import Annotated, Any

import orjson
from pydantic import Field

from holdfast.delivery.basics.json_text import part
from holdfast.delivery.basics.node import NS_PER_MS, Node
from holdfast.delivery.letters.dead import DeadLetter
from holdfast.delivery.messages import trails
from holdfast.store.format.operator_input import AnyLetterState, Count, Ms, values_of
from holdfast.store.letters.search import LetterGroup
from holdfast.store.remarks import Remark
from holdfast.store.replays.job_records import SKIP_WORDS, Job, JobState
from holdfast.web.admin.views import view_of


@dataclass(frozen=True, slots=True)
class Attempt:
    """One hand-over and what became of it."""

    n: Annotated[int, Field(ge=1)]
    time: Ms
    node: str
    transport: str | None
    outcome: str
    latency_ms: Count | None
    code: str | None
    text: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LetterSummary:
    """One dead letter."""

    id: Annotated[str, Field(pattern="^[0-9]{19}$")]
    message: Annotated[str, Field(description="The message: `<deployment>-<ns>`.")]
    channel: str
    receiver: Annotated[str, Field(description="Name of the session that the letter was for.")]
    subject: Annotated[str, Field(description="Subject of the receiver.")]
    sender: Annotated[str, Field(description="Absolute name of the publisher, or empty.")]
    code: Annotated[str, Field(description="The cause, an error code.")]
    reason: Annotated[str, Field(description="What the code means, then `said`.")]
    said: Annotated[str, Field(description="The receiver's own words; empty if it said nothing.")]
    fingerprint: Annotated[
        str, Field(description="The same for all letters with this channel and code.")
    ]
    state: AnyLetterState
    published: Ms
    died: Ms
    expires: Annotated[int, Field(description="When the record will be removed at the latest.")]
    attempts: Count
    redelivered: Count
    generation: Annotated[int, Field(ge=0, description="Replays of its message before it died.")]
    replays: Annotated[int, Field(ge=0, description="Replays of this letter.")]
    replay: Annotated[str | None, Field(description="Id of the replay that took it.")]
    bytes: Count


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter(LetterSummary):
    """One dead letter with content and history."""

    data: Any
    properties: dict[str, Any] | None
    expiration: Annotated[
        dict[str, int | bool] | None, Field(description="`lifeTime` (ms) and `forceDestroy`.")
    ]
    priority: Annotated[int, Field(ge=0, le=9)]
    durable: bool
    history: list[Attempt]
    policy: Annotated[dict[str, Any] | None, Field(description="Options that were in force.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Dead letters of one fingerprint, or of one code and, if so asked, one channel pattern."""

    fingerprint: Annotated[str | None, Field(description="Null of groups that are not by cause.")]
    channel: Annotated[str, Field(description="A pattern of groups that are not by cause.")]
    code: str
    reason: Annotated[str, Field(description="The reason of the sample.")]
    said: Annotated[str, Field(description="The words of its receiver; empty if it said nothing.")]
    count: Count
    receivers: Count
    first: Ms
    last: Ms
    sample: Annotated[str, Field(description="Id of the latest letter.")]
    hours: Annotated[
        tuple[int, ...], Field(description="Deaths in each of the last 24 hours, up to now.")
    ]
    days: Annotated[
        tuple[int, ...], Field(description="Deaths in each of the last 30 days, up to now.")
    ]
    remark: Remark | None


@dataclass(frozen=True, slots=True)
class Groups:
    """A part of the groups, the largest first."""

    items: list[Group]
    cursor: Annotated[str | None, Field(description="Asks for the next part; null at the end.")]
    total: Annotated[int, Field(ge=0, description="Dead letters in all groups.")]


@dataclass(frozen=True, slots=True)
class Purge:
    """The result of a purge, or of its dry run."""

    matched: Count
    purged: Count
    dry_run: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """A replay: planned by a dry run, under way, or over."""

    id: Annotated[str | None, Field(description="Null for a dry run.")]
    state: Annotated[JobState, values_of(JobState)]
    over: Annotated[bool, Field(description="It has ended, for whatever reason.")]
    who: str
    started: Ms | None
    finished: Ms | None
    filter: dict[str, Any]
    options: dict[str, Any]
    total: Annotated[int, Field(ge=0, description="Letters that match.")]
    sent: Annotated[int, Field(ge=0, description="Letters put into their receivers' queues again.")]
    acked: Count
    died_again: Annotated[int, Field(ge=0, description="Letters that died again.")]
    skipped: Annotated[int, Field(ge=0, description="Skipped letters; `skips` has the reasons.")]
    skips: Annotated[
        dict[str, int],
        Field(
            description="Skipped letters by reason.",
            json_schema_extra={"x-words": {**SKIP_WORDS}},
        ),
    ]
    channels: Annotated[dict[str, int], Field(description="Letters by channel, 20 at most.")]
    receivers: Annotated[dict[str, int], Field(description="Letters by receiver, 20 at most.")]
    away: Annotated[
        dict[str, int],
        Field(description="Of a dry run: letters for receivers that are away, 20 at most."),
    ]
    reason: Annotated[str | None, Field(description="Why the replay stopped.")]


def letter_summary(node: Node, letter: DeadLetter, age_ms: int) -> LetterSummary:
    """Return a dead letter as lists show it; letters are kept for `age_ms`."""
    died = int(letter.id) // NS_PER_MS
    return view_of(
        LetterSummary,
        letter,
        message=node.id_of(letter.message),
        receiver=letter.key,
        sender=letter.publisher,
        published=letter.message // NS_PER_MS,
        died=died,
        expires=died + age_ms,
        attempts=letter.attempt_count,
        replay=letter.job or None,
        bytes=letter.size,
    )


def whole_letter(node: Node, letter: DeadLetter, age_ms: int) -> Letter:
    """Return a dead letter with content and history."""
    return view_of(
        Letter,
        letter_summary(node, letter, age_ms),
        letter,
        data=part(orjson.loads(letter.wire).get("data")),
        properties=None if letter.properties is None else part(dict(letter.properties)),
        durable=letter.is_durable,
        history=[_attempt(attempt) for attempt in letter.attempts],
        policy=None if letter.policy is None else part(dict(letter.policy)),
    )


def _attempt(attempt: trails.Attempt) -> Attempt:
    return view_of(
        Attempt,
        attempt,
        transport=attempt.transport or None,
        latency_ms=attempt.latency,
        code=attempt.code or None,
        text=attempt.text or None,
    )


def group(found: LetterGroup, remark: Remark | None) -> Group:
    """Return a group of dead letters with its remark."""
    about: dict[str, object] = {"sample": found.sample.id, "remark": remark}
    if found.pattern is not None:
        about |= {"fingerprint": None, "channel": found.pattern}
    return view_of(Group, found, found.sample, **about)


def replay(job: Job) -> Replay:
    """Return a replay, planned or begun."""
    is_planned = job.state is JobState.PLANNED
    edit = job.options.edit
    options = job.options.model_dump(exclude={"edit"})
    options["edit"] = None if edit is None else {"data": part(edit.data)}
    return view_of(
        Replay,
        job,
        id=None if is_planned else job.id,
        over=job.is_over,
        started=None if is_planned else job.started,
        filter=job.which.model_dump(),
        options=options,
        died_again=job.failed,
        skipped=sum(job.skipped.values()),
        skips=dict(job.skipped),
        reason=job.reason or None,
    )
