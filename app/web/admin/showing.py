"""Sessions, dead letters and replays in the shapes of the administration."""

from dataclasses import asdict, fields
from typing import Any, cast

import orjson

from app.bayeux.server import Bayeux
from app.bayeux.sessions import Session
from app.bayeux.standing import (
    contact,
    created_ms,
    expires_ms,
    first_entries,
    hold_of,
    is_connected,
    last_seen_ms,
    limits,
    wall_ms,
)
from app.delivery.attempts import Attempt
from app.delivery.dead_letters import DeadLetter
from app.delivery.dispatcher import DEFAULT_POLICY, State
from app.delivery.entries import Entry, Settling
from app.delivery.json_text import part
from app.delivery.queue import CallbackQueue
from app.store.letter_search import LetterGroup
from app.store.remarks import Remark
from app.store.replay_jobs import Job
from app.web.admin import shapes
from app.web.admin.operations import LetterFilter
from app.web.admin.shapes import DispatcherState

_NS_PER_MS = 1_000_000
# Larger events are not shown in lists.
_LARGEST = 64 * 1024
_CHANNELS = 1000


# Sessions


def state_of(session: Session) -> DispatcherState:
    return cast("DispatcherState", contact(session).name)


def session_summary(bayeux: Bayeux, session: Session) -> shapes.SessionSummary:
    """What lists tell of a session."""
    queue, hold, limit = session.queue, hold_of(session), limits(bayeux, session)
    kind = session.connection_type
    head = next(first_entries(queue, 1), None)
    return shapes.SessionSummary(
        key=session.key,
        name=session.name,
        subject=session.subject,
        number=int(session.key.rpartition("/")[2]),
        node=bayeux.node.name,
        state=state_of(session),
        active=hold is None,
        hold=None if hold is None else shapes.Hold(hold.reason, hold.who, hold.since, hold.until),
        connected=is_connected(session),
        transport=None if kind is None else kind.value,
        durable=session.is_durable,
        waiting=queue.count - len(queue.handed),
        handed=len(queue.handed),
        bytes=queue.size,
        max_entries=limit.entries,
        max_bytes=limit.bytes,
        attempts=0 if head is None else head.attempts,
        subscriptions=len(session.subscriptions),
        created=created_ms(session),
        last_seen=last_seen_ms(bayeux, session),
    )


def whole_session(
    bayeux: Bayeux, session: Session, dead: int, last_letter: DeadLetter | None
) -> shapes.Session:
    """All that is known of a session."""
    summary = session_summary(bayeux, session)
    terms, dispatcher = session.terms, session.dispatcher
    policy = DEFAULT_POLICY if dispatcher is None else dispatcher.policy
    is_polling = dispatcher is not None and dispatcher.state is State.POLLING
    deadline = dispatcher.deadline if dispatcher is not None and is_polling else None
    queue = session.queue
    return shapes.Session(
        **{each.name: getattr(summary, each.name) for each in fields(summary)},
        channels=sorted(session.subscriptions)[:_CHANNELS],
        acknowledges=queue.settling is Settling.BATCH,
        gives_verdicts=terms is not None and queue.settling is not Settling.WRITTEN,
        expires=expires_ms(bayeux, session),
        retries=policy.retries,
        delay_ms=round(policy.delay_s * 1000),
        retry=0 if dispatcher is None else dispatcher.attempt,
        next_attempt=None if deadline is None else wall_ms(bayeux, deadline),
        redelivered=sum(entry.redelivered for entry in first_entries(queue, queue.count)),
        published=session.published,
        acked=session.acked,
        dead=dead,
        last_failure=_last_failure(queue, last_letter),
    )


def _last_failure(queue: CallbackQueue, letter: DeadLetter | None) -> str | None:
    """What was said last of anything that is in the queue, or died."""
    tried = [attempt for each in first_entries(queue, queue.count) for attempt in each.trail]
    # A reply that was lost is nothing that was said.
    failures = [(each.time, each.code) for each in tried if each.code == each.outcome]
    if letter is not None:
        failures.append((int(letter.id) // _NS_PER_MS, letter.code))
    return max(failures)[1] if failures else None


def entry(bayeux: Bayeux, session: Session, entry: Entry) -> shapes.Entry:
    """One message in the queue of one session."""
    message = entry.message
    is_cut = len(message.wire) > _LARGEST
    published = message.id // _NS_PER_MS
    return shapes.Entry(
        id=f"{bayeux.node.name}-{message.id}",
        channel=message.channel,
        sender=message.sender,
        state="handed" if entry.seq in session.queue.handed else "waiting",
        priority=message.priority,
        published=published,
        expires=message.expires_ms or None,
        durable=message.is_durable,
        seq=entry.seq,
        batch=entry.batch,
        attempts=entry.attempts,
        redelivered=entry.redelivered,
        generation=message.generation,
        bytes=len(message.wire),
        data=None if is_cut else _data(message.wire),
        is_cut=is_cut,
    )


def _data(wire: bytes) -> Any:  # noqa: ANN401 - whatever was published
    return part(orjson.loads(wire).get("data"))


# Dead letters


def letter_summary(node: str, letter: DeadLetter, age_ms: int) -> shapes.LetterSummary:
    """What lists tell of a dead letter; such are kept so long."""
    died = int(letter.id) // _NS_PER_MS
    return shapes.LetterSummary(
        id=letter.id,
        message=f"{node}-{letter.message}",
        channel=letter.channel,
        receiver=letter.key,
        subject=letter.subject,
        sender=letter.publisher,
        code=letter.code,
        reason=letter.reason,
        fingerprint=letter.fingerprint,
        state=letter.state.value,
        published=letter.message // _NS_PER_MS,
        died=died,
        expires=died + age_ms,
        attempts=letter.attempt_count,
        redelivered=letter.redelivered,
        generation=letter.generation,
        replays=letter.replays,
        replay=letter.job or None,
        bytes=letter.size,
    )


def whole_letter(node: str, letter: DeadLetter, age_ms: int) -> shapes.Letter:
    """A dead letter with content and history."""
    summary = letter_summary(node, letter, age_ms)
    return shapes.Letter(
        **{each.name: getattr(summary, each.name) for each in fields(summary)},
        data=_data(letter.wire),
        properties=None if letter.properties is None else part(dict(letter.properties)),
        priority=letter.priority,
        durable=letter.is_durable,
        history=[_attempt(attempt) for attempt in letter.attempts],
        policy=None if letter.policy is None else part(dict(letter.policy)),
    )


def _attempt(attempt: Attempt) -> shapes.Attempt:
    return shapes.Attempt(
        n=attempt.n,
        time=attempt.time,
        node=attempt.node,
        transport=attempt.transport or None,
        outcome=attempt.outcome,
        latency_ms=attempt.latency,
        code=attempt.code or None,
        text=attempt.text or None,
    )


def group(found: LetterGroup, said: Remark | None) -> shapes.Group:
    """Dead letters that are alike."""
    sample = found.sample
    return shapes.Group(
        fingerprint=sample.fingerprint,
        channel=sample.channel,
        code=sample.code,
        reason=sample.reason,
        count=found.count,
        receivers=found.receivers,
        first=found.first,
        last=found.last,
        sample=sample.id,
        hours=list(found.hours),
        days=list(found.days),
        remark=None if said is None else remark(said),
    )


def remark(said: Remark) -> shapes.Remark:
    """What operators say of letters that are alike."""
    return shapes.Remark(said.assignee, said.note, said.who, said.at)


# Replays


def replay(job: Job) -> shapes.Replay:
    """A replay, planned or begun."""
    is_planned = job.state.value == "planned"
    options = job.options
    which = asdict(job.which)
    which["state"] = None if job.which.state is None else job.which.state.value
    return shapes.Replay(
        id=None if is_planned else job.id,
        state=job.state.value,
        who=job.who,
        started=None if is_planned else job.started,
        finished=job.finished,
        filter=which,
        options={
            "rate": options.rate,
            "canary": options.canary,
            "stop_at": options.stop_ratio,
            "max_replays": options.max_generation,
            "to": options.target,
            "edit": None if options.data is None else {"data": part(orjson.loads(options.data))},
        },
        total=job.total,
        sent=job.sent,
        acked=job.acked,
        failed=job.failed,
        skipped=sum(job.skipped.values()),
        skips=dict(job.skipped),
        channels=job.channels,
        receivers=job.receivers,
        reason=job.reason or None,
    )


def conditions(which: LetterFilter) -> dict[str, Any]:
    """The conditions that were given, for the audit; of single letters only how many."""
    given = {name: value for name, value in asdict(which).items() if value not in (None, ())}
    if which.ids:
        given["ids"] = len(which.ids)
    return given
