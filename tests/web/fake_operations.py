"""The resources of the administration in memory: no server, no store, no waiting."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import fields, replace
from typing import Any

import orjson

from holdfast.bayeux.commands.grammar import Command, understand
from holdfast.bayeux.commands.running import CommandReply
from holdfast.delivery.basics.ranking import RankingKind
from holdfast.delivery.letters.dead import LetterState
from holdfast.delivery.queues.dispatcher import DispatcherState
from holdfast.delivery.topics.states import TopicState
from holdfast.store.audit import AuditEntry
from holdfast.store.format.figure_records import COUNTS, LENGTHS
from holdfast.store.format.layouts import LAYOUT, OLDEST_LAYOUT
from holdfast.store.format.operator_input import GroupedBy
from holdfast.store.letters.administration import Import, Refusal
from holdfast.store.letters.filter import LetterFilter
from holdfast.store.remarks import Remark
from holdfast.store.replays.job_records import JobState
from holdfast.store.replays.parameters import ReplayOptions
from holdfast.units import Form
from holdfast.web.admin.changes import check_sweep
from holdfast.web.admin.delayed import DelayedMessage
from holdfast.web.admin.faults import CONFLICT, UNKNOWN, UNKNOWN_SESSION, RequestFailed, illegal
from holdfast.web.admin.figure_readings import TIMES
from holdfast.web.admin.host_views import HostNow, Hosts, HostWish, ShardMove
from holdfast.web.admin.letter_views import (
    Attempt,
    Group,
    Groups,
    Letter,
    LetterSummary,
    Purge,
    Replay,
)
from holdfast.web.admin.letters import check_edit
from holdfast.web.admin.message_views import KeptMessage, Trace, TraceQueue, TraceStep
from holdfast.web.admin.now_tables import NowTable, tables
from holdfast.web.admin.now_views import FirstItems, Now, ShardNow
from holdfast.web.admin.past import Past, PastRow, Top, TopName
from holdfast.web.admin.readers import Reader
from holdfast.web.admin.session_filter import SessionFilter
from holdfast.web.admin.session_views import (
    ChangedChannel,
    ChangedSession,
    ClearedQueue,
    EndedSessions,
    Entry,
    HeldChannel,
    Hold,
    ReleasedChannel,
    Session,
    SessionSummary,
)
from holdfast.web.admin.shared_queues import SubjectQueue, WorkQueue
from holdfast.web.admin.system_views import (
    About,
    ChannelSummary,
    Figures,
    PipelineResult,
)
from holdfast.web.admin.topic_views import Topic
from holdfast.web.admin.upgrade import Upgrade
from holdfast.web.admin.views import Item, Page, TableColumn, view_of
from holdfast.web.admin.webhooks import Webhook, WebhookState

NOW_MS = 1_790_000_000_000
HOLDBACK = "user.update.holdback"
# An unknown message.
NO_MESSAGE = f"holdfast-{1:019d}"


def a_session(key: str = "joe/1", **changes: Any) -> Session:
    subject, _, number = key.rpartition("/")
    session = Session(
        key=key,
        name=f"client/{key}",
        subject=subject,
        number=int(number),
        node="holdfast",
        state=DispatcherState.ALIVE,
        active=True,
        hold=None,
        has_connection=True,
        absent=False,
        transport="websocket",
        durable=int(number) > 0,
        waiting=2,
        in_flight=1,
        bytes=300,
        max_entries=10_000,
        max_bytes=16 * 1024**2,
        attempts=1,
        subscriptions=1,
        created=NOW_MS - 60_000,
        last_seen=NOW_MS - 1000,
        channels=["/news"],
        acknowledges=True,
        gives_verdicts=True,
        expires=None,
        retries=0,
        delay_ms=60_000,
        retry=0,
        next_attempt=None,
        redelivered=0,
        acked=7,
        dead=0,
        last_failure=None,
    )
    return replace(session, **changes)


def an_entry(number: int) -> Entry:
    return Entry(
        id=f"holdfast-{number}",
        channel="/news",
        sender="client/ann/1",
        state="waiting",
        priority=5,
        published=NOW_MS,
        expires=None,
        durable=True,
        seq=0,
        batch=0,
        attempts=0,
        redelivered=0,
        generation=0,
        bytes=20,
        data={"n": number},
        is_cut=False,
    )


def a_letter(number: int, **changes: Any) -> Letter:
    letter = Letter(
        id=f"{number:019}",
        message=f"holdfast-{number}",
        channel="/orders",
        receiver="joe/1",
        subject="joe",
        sender="client/ann/1",
        code="user.update.deadMessage",
        reason="cannot be read",
        said="cannot be read",
        fingerprint="f1",
        state=LetterState.NEW,
        published=NOW_MS - 5000,
        died=NOW_MS - number,
        expires=NOW_MS - number + 30 * 24 * 3_600_000,
        attempts=1,
        redelivered=0,
        generation=0,
        replays=0,
        replay=None,
        bytes=20,
        data={"order": number},
        properties=None,
        expiration=None,
        priority=5,
        durable=True,
        history=[
            Attempt(1, NOW_MS - 4000, "holdfast", "websocket", "refused", 12, HOLDBACK, "disk full")
        ],
        policy={"retries": 0},
    )
    return replace(letter, **changes)


def some_figures(**changes: Any) -> Figures:
    counts = {each.name: 0 for each in fields(Figures)}
    known: dict[str, Any] = {
        **counts,
        "time": NOW_MS,
        "node": "holdfast",
        "version": "1.2",
        "started": NOW_MS - 60_000,
        "oldest_ms": None,
        "store_available": True,
        "latency": None,
    }
    return Figures(**{**known, **changes})


def a_past_row(minute: int, **figures: Any) -> PastRow:
    buckets = {name: [0] * (len(bounds) + 1) for name, bounds in TIMES.items()}
    known = {**dict.fromkeys((*COUNTS, *LENGTHS), 0), **buckets, **figures}
    return PastRow(time=minute * 60_000, served_ms=60_000, **known)


def some_past(*rows: PastRow) -> Past:
    bounds = {name: [*seconds] for name, seconds in TIMES.items()}
    return Past(NOW_MS - 3_600_000, NOW_MS, 60_000, bounds, [*rows])


def a_top(by: str) -> Top:
    names = [TopName(f"{by} {n}", 10 - n, 12 - n) for n in range(3)]
    return Top(RankingKind(by), NOW_MS - 3_600_000, NOW_MS, 2, names)


def nothing_waits(**changes: Any) -> Now:
    lists = (
        "oldest_receivers",
        "receivers",
        "channels",
        "work_queues",
        "held_back",
        "held_channels",
        "unreachable",
        "alerts",
        "workers",
        "letters",
        "shards",
        "backend",
    )
    known: dict[str, Any] = {
        **{name: FirstItems([], 0) for name in lists},
        "sentence": "nothing waits",
        "time": NOW_MS,
        "store": "available",
        "waiting": 0,
        "in_flight": 0,
        "oldest": None,
        "figures": some_figures(),
    }
    return Now(**{**known, **changes})


def a_shard(number: int, **changes: Any) -> ShardNow:
    known: dict[str, Any] = {
        "state": "serving",
        "since": NOW_MS - 60_000,
        "restarts": 0,
        "last_end": None,
        "pid": 4711 + number,
        "sessions": 12,
        "store": "available",
        "links": 1,
        "behind_ms": 2,
    }
    return ShardNow(shard=number, **{**known, **changes})


def a_lost_shard(number: int, **changes: Any) -> ShardNow:
    """One that does not answer: only others say something about it."""
    unknown = dict.fromkeys(("pid", "sessions", "store", "links"))
    return a_shard(number, **unknown, **{"state": "away", **changes})


def a_host(name: str, *shards: int, **changes: Any) -> HostNow:
    known: dict[str, Any] = {
        "release": "1.2",
        "url": f"http://{name}:8080",
        "drain": None,
        "digest": "d1",
        "refused": [],
    }
    return HostNow(name=name, shards=[*shards], **{"state": "serving", **known, **changes})


def some_hosts() -> Hosts:
    items = [
        a_host("a.example", 0, 3),
        a_host("b.example", 1, 2, 5),
        a_host("c.example", state="away", release=None, url=None),
    ]
    return Hosts(items, unowned=[4], emptied=[], moves=[ShardMove(5, "b.example", "a.example")])


def a_topic(channel: str, **fields: Any) -> Topic:
    about: dict[str, Any] = {
        "state": TopicState.ALIVE,
        "destroy_delay": 60_000,
        "readonly": False,
        "history": 10,
        "kept": 3,
        "queued": 2,
        "work": 2,
        "subscribers": 1,
    }
    return Topic(channel=channel, **about | fields)


class FakeOperations:
    """The resources with a few dictionaries; `changes` records the changes that were asked for."""

    def __init__(self, sessions: Sequence[Session] = (), letters: Sequence[Letter] = ()) -> None:
        self.by_key = {each.key: each for each in sessions}
        self.by_id = {each.id: each for each in letters}
        self.jobs: dict[str, Replay] = {}
        self.remarks: dict[str, Remark] = {}
        self.is_store_away = False
        self.held = {
            "/orders": HeldChannel(
                "/orders", "nobody takes it", "guard", NOW_MS, None, 2, NOW_MS + 20_000
            )
        }
        self.changes: list[AuditEntry] = []
        self.known = [
            a_topic("/orders/7"),
            a_topic(
                "/orders/8",
                state=TopicState.UNREFERENCED,
                destroy_delay=-1,
                readonly=True,
                **dict.fromkeys(("history", "kept", "queued", "work", "subscribers"), 0),
            ),
        ]
        # The layout of the store.
        self.layout = OLDEST_LAYOUT
        # What is stuck now, and the figures of the past with what was asked for.
        self.standing = nothing_waits()
        self.past_figures = some_past(a_past_row(NOW_MS // 60_000, published=6, starts=1))
        self.asked: list[tuple[int | str | None, ...]] = []
        # The machines, and what is told from the second question on.
        self.all_hosts = some_hosts()
        self.later_hosts: Hosts | None = None
        # Whether no message waits until it is due any more.
        self.is_cancelled = False
        # Whether nothing waits for subjects any more.
        self.is_cleared = False
        # How far each look at a replay brings it, and how many looks there were.
        self.pace = 1
        self.looks = 0
        # Whether a replay has counted its letters when it begins.
        self.has_counted = True
        # What each replay leaves out, and why.
        self.skips: dict[str, int] = {}
        self.away: dict[str, int] = {}
        # The number of sessions that can be ended before their letters find no room.
        self.may_end = 1_000_000
        # The steps of every message in the journal, in two parts.
        self.steps: list[TraceStep] = []
        self.lakes: list[str] = []
        # What every method raises, if it is set.
        self.fault: Exception | None = None
        # An export breaks off after so many lines.
        self.breaks_after: int | None = None

    def _changed(self, who: str, action: str, target: str, **detail: Any) -> None:
        number = str(len(self.changes) + 1)
        self.changes.append(AuditEntry(number, NOW_MS, who, action, target, "ok", detail))

    async def sessions(
        self, filter: SessionFilter, cursor: str | None, limit: int, *, sort: str = ""
    ) -> Page[SessionSummary]:
        self._fail()
        found = self._meant(filter)
        summaries = [_summary(each) for each in found]
        return _page(summaries, cursor, limit)

    def _meant(self, which: SessionFilter) -> list[Session]:
        return [
            each
            for key, each in sorted(self.by_key.items())
            if key.startswith(which.prefix)
            and which.state in (None, each.state)
            and which.held in (None, each.hold is not None)
            and which.channel in (None, *each.channels)
            and which.unconnected in (None, not each.has_connection)
            and (which.seen_before is None or each.last_seen < which.seen_before)
            and (which.begun_before is None or each.created < which.begun_before)
        ]

    async def session(self, key: str) -> Session:
        self._fail()
        if key not in self.by_key:
            raise RequestFailed(UNKNOWN_SESSION, f"there is no session {key}")
        return self.by_key[key]

    async def peek(self, key: str, limit: int) -> list[Entry]:
        session = await self.session(key)
        return [an_entry(n + 1) for n in range(min(session.waiting, limit))]

    async def end_session(self, key: str, who: str) -> None:
        await self.session(key)
        del self.by_key[key]
        self._changed(who, "session.end", key)

    async def end_sessions(
        self, filter: SessionFilter, limit: int, *, all: bool, dry_run: bool, who: str
    ) -> EndedSessions:
        self._fail()
        check_sweep(filter, all=all)
        found = self._meant(filter)
        entries = sum(each.waiting + each.in_flight for each in found)
        if dry_run:
            return EndedSessions(len(found), entries, 0, True)
        ending = found[: min(limit, self.may_end)]
        self.may_end -= len(ending)
        for each in ending:
            del self.by_key[each.key]
        ended = len(ending)
        self._changed(who, "sessions.end", "", filter=filter.model_dump(), ended=ended)
        return EndedSessions(len(found), entries, ended, False)

    async def hold(self, key: str, reason: str, until: int | None, who: str) -> ChangedSession:
        session = await self.session(key)
        self._changed(who, "session.hold", key, reason=reason, until=until)
        hold = Hold(reason, who, NOW_MS, until)
        self.by_key[key] = replace(session, hold=hold, active=False)
        return view_of(ChangedSession, self.by_key[key], unstored=self.is_store_away)

    async def resume(self, key: str, who: str) -> ChangedSession:
        session = await self.session(key)
        self._changed(who, "session.resume", key)
        self.by_key[key] = replace(session, hold=None, active=True)
        return view_of(ChangedSession, self.by_key[key], unstored=self.is_store_away)

    async def clear(self, key: str, who: str) -> ClearedQueue:
        session = await self.session(key)
        self._changed(who, "session.clear", key)
        self.by_key[key] = replace(session, waiting=0, in_flight=0, bytes=0)
        return ClearedQueue(session.waiting + session.in_flight)

    async def subjects(
        self, cursor: str | None, limit: int, *, sort: str = ""
    ) -> Page[SubjectQueue]:
        self._fail()
        waiting = SubjectQueue("joe", 2, 300, NOW_MS - 60_000)
        return Page([] if self.is_cleared else [waiting], None)

    async def subject_queue(self, subject: str, limit: int) -> list[Entry]:
        self._fail()
        waiting = 0 if subject != "joe" or self.is_cleared else 2
        return [an_entry(n + 1) for n in range(min(waiting, limit))]

    async def clear_subject(self, subject: str, who: str) -> ClearedQueue:
        cleared = len(await self.subject_queue(subject, 2))
        self.is_cleared = True
        self._changed(who, "subject.clear", subject)
        return ClearedQueue(cleared)

    async def work_queues(
        self, cursor: str | None, limit: int, *, sort: str = ""
    ) -> Page[WorkQueue]:
        self._fail()
        return Page([WorkQueue("/jobs", 2, 300, NOW_MS - 60_000, 1)], None)

    async def work_queue(self, channel: str, limit: int) -> list[Entry]:
        self._fail()
        return [an_entry(n + 1) for n in range(min(2, limit))]

    async def work_receivers(self, channel: str, limit: int) -> list[SessionSummary]:
        self._fail()
        return [_summary(each) for each in list(self.by_key.values())[:limit]]

    async def clear_work_queue(self, channel: str, who: str) -> ClearedQueue:
        self._fail()
        self._changed(who, "work.clear", channel)
        return ClearedQueue(2)

    async def webhooks(self, cursor: str | None, limit: int, *, sort: str = "") -> Page[Webhook]:
        self._fail()
        shop = Webhook(
            *("shop", "https://shop.example", WebhookState.WAITS, 3, 120, 2),
            *("503 Service Unavailable: try later", NOW_MS - 4_000),
        )
        return Page([shop], None)

    async def readers(self, cursor: str | None, limit: int, *, sort: str = "") -> Page[Reader]:
        self._fail()
        names = [f"/rooms/{number}" for number in range(10)]
        ada = Reader("1", "ada", "192.0.2.1", "events", NOW_MS - 60_000, 2048, names, 5)
        bob = Reader("2", "", "192.0.2.2", "long-poll", NOW_MS - 1_000, 0, ["/news"], 0)
        return Page([ada, bob], None)

    async def delayed(
        self, cursor: str | None, limit: int, *, sort: str = ""
    ) -> Page[DelayedMessage]:
        self._fail()
        waiting = DelayedMessage(
            id=f"holdfast-{NOW_MS * 1_000_000}",
            due=NOW_MS + 60_000,
            accepted=NOW_MS,
            channel="/orders/7",
            sender="client/ann/1",
            priority=5,
            bytes=120,
            durable=True,
            data={"n": 1},
            is_cut=False,
        )
        return Page([] if self.is_cancelled else [waiting], None)

    async def cancel_delayed(self, id: str, who: str) -> None:
        self._fail()
        if self.is_cancelled or id == NO_MESSAGE:
            raise RequestFailed(UNKNOWN, f"{id} is not a message that waits until it is due")
        self.is_cancelled = True
        self._changed(who, "delayed.cancel", id)

    async def topics(
        self, prefix: str, cursor: str | None, limit: int, *, sort: str = ""
    ) -> Page[Topic]:
        self._fail()
        fit = [each for each in self.known if each.channel.startswith(prefix)]
        return _page(fit, cursor, limit)

    async def topic(self, channel: str) -> Topic:
        self._fail()
        found = [each for each in self.known if each.channel == channel]
        if not found:
            raise RequestFailed(UNKNOWN, f"{channel} is not a topic")
        return found[0]

    async def topic_history(
        self, channel: str, limit: int, filter: str | None
    ) -> list[KeptMessage]:
        self._fail()
        kept = KeptMessage(
            id="holdfast-1790000000000000000",
            channel=channel,
            sender="client/joe/1",
            priority=5,
            published=NOW_MS,
            durable=True,
            bytes=40,
            data={"n": 1},
            is_cut=False,
        )
        return [kept] * min(limit, 1 if filter else 2)

    async def erase_topic(self, channel: str, who: str, *, force: bool) -> None:
        self.known.remove(await self.topic(channel))
        self._changed(who, "topic.erase", channel, force=force)

    async def figures(self) -> Figures:
        self._fail()
        return some_figures()

    async def past(
        self, since: int | None, until: int | None, step: int, shard: int | None
    ) -> Past:
        self._fail()
        self.asked.append(("past", since, until, step, shard))
        return self.past_figures

    async def top(
        self, by: Any, since: int | None, until: int | None, limit: int, shard: int | None
    ) -> Top:
        self._fail()
        return a_top(by.value)

    async def now_tables(self) -> list[NowTable]:
        return tables(has_hosts=False)

    async def shards(self) -> list[ShardNow]:
        return self.standing.shards.items

    async def now(self, limit: int) -> Now:
        self._fail()
        return self.standing

    async def about(self, who: str) -> About:
        self._fail()
        return About(
            role="reader" if who.startswith("reader") else "operator",
            who=who,
            node="holdfast",
            version="1.2",
            started=NOW_MS - 60_000,
            now=NOW_MS,
            journal=True,
        )

    async def channels(
        self, prefix: str, cursor: str | None, limit: int, *, sort: str = ""
    ) -> Page[ChannelSummary]:
        self._fail()
        names = ("/news", "/orders")
        known = [ChannelSummary(name, 2, 1.5, name in self.held, 3) for name in names]
        return _page([each for each in known if each.name.startswith(prefix)], cursor, limit)

    async def trace(self, id: str, cursor: str | None) -> Trace:
        self._fail()
        at = TraceQueue("joe/1", "waiting", False, 0, 0, NOW_MS - 90_000)
        is_known = id != NO_MESSAGE
        return Trace(
            id=id,
            published=NOW_MS if is_known else None,
            journal=is_known,
            lakes=self.lakes,
            queues=[at] if cursor is None and is_known else [],
            letters=[],
            is_cut=False,
            steps=self.steps[:1] if cursor is None else self.steps[1:],
            cursor=None if cursor else "7-0",
        )

    def _host(self, name: str) -> HostNow:
        found = [each for each in self.all_hosts.items if each.name == name]
        if not found:
            raise RequestFailed(UNKNOWN, f"{name} is none of the hosts in the settings")
        return found[0]

    async def hosts(self) -> Hosts:
        self._fail()
        found, self.all_hosts = self.all_hosts, self.later_hosts or self.all_hosts
        return found

    async def drain_host(self, host: str, who: str) -> None:
        drained = replace(self._host(host), state="draining", drain=HostWish(who, NOW_MS))
        self._set_host(drained)
        self._changed(who, "host.drain", host)

    async def uncordon_host(self, host: str, who: str) -> None:
        self._set_host(replace(self._host(host), state="serving", drain=None))
        self._changed(who, "host.uncordon", host)

    def _set_host(self, changed: HostNow) -> None:
        items = [changed if each.name == changed.name else each for each in self.all_hosts.items]
        self.all_hosts = replace(self.all_hosts, items=items)

    async def table_steps(self, id: str) -> list[TraceStep]:
        self._fail()
        return self.steps

    async def pipeline_results(self) -> list[PipelineResult]:
        return [await self.pipeline_result("dead")]

    async def pipeline_result(self, result: str) -> PipelineResult:
        self._fail()
        if result != "dead":
            raise RequestFailed(UNKNOWN, f"there is no {result}")
        columns = [TableColumn("dead", Form.COUNT, "How many.")]
        rows = [{"code": HOLDBACK, "dead": 3}]
        return PipelineResult(result, NOW_MS, None, None, "Dead letters", columns, rows)

    async def held_channels(self) -> list[HeldChannel]:
        self._fail()
        return list(self.held.values())

    async def hold_channel(
        self, channel: str, reason: str, until: int | None, who: str
    ) -> ChangedChannel:
        self._changed(who, "channel.hold", channel)
        self.held[channel] = HeldChannel(channel, reason, who, NOW_MS, until, 0, None)
        return view_of(ChangedChannel, self.held[channel], unstored=self.is_store_away)

    async def release(self, channel: str, who: str) -> ReleasedChannel:
        if self.held.pop(channel, None) is None:
            raise RequestFailed(UNKNOWN, f"{channel} is not held")
        self._changed(who, "channel.release", channel)
        return ReleasedChannel(channel, self.is_store_away)

    def _matching(self, which: LetterFilter) -> list[Letter]:
        self._fail()
        exact = ("channel", "receiver", "subject", "code", "fingerprint", "state")
        wanted = {name: getattr(which, name) for name in exact if getattr(which, name) is not None}
        return [
            each
            for _, each in sorted(self.by_id.items(), reverse=True)
            if (not which.ids or each.id in which.ids)
            and all(getattr(each, name) == value for name, value in wanted.items())
            and (which.since is None or each.died >= which.since)
            and (which.until is None or each.died < which.until)
        ]

    async def letters(
        self, filter: LetterFilter, cursor: str | None, limit: int, *, sort: str = ""
    ) -> Page[LetterSummary]:
        names = LetterSummary.__dataclass_fields__
        found = [
            LetterSummary(**{name: getattr(each, name) for name in names})
            for each in self._matching(filter)
        ]
        return _page(found, cursor, limit)

    async def letter(self, id: str) -> Letter:
        self._fail()
        if id not in self.by_id:
            raise RequestFailed(UNKNOWN, f"there is no dead letter {id}")
        return self.by_id[id]

    async def groups(
        self, fingerprint: str | None, cursor: str | None, limit: int, *, by: GroupedBy
    ) -> Groups:
        found: dict[str, list[Letter]] = {}
        for letter in self._matching(LetterFilter(fingerprint=fingerprint)):
            name = letter.fingerprint if by is GroupedBy.CAUSE else letter.code
            found.setdefault(name, []).append(letter)
        groups = [
            Group(
                fingerprint=name if by is GroupedBy.CAUSE else None,
                channel=letters[0].channel if by is GroupedBy.CAUSE else "/**",
                code=letters[0].code,
                reason=letters[0].reason,
                said=letters[0].said,
                count=len(letters),
                receivers=len({letter.receiver for letter in letters}),
                first=min(letter.died for letter in letters),
                last=max(letter.died for letter in letters),
                sample=letters[0].id,
                hours=(0,) * 23 + (len(letters),),
                days=(0,) * 29 + (len(letters),),
                remark=self.remarks.get(name),
            )
            for name, letters in found.items()
        ]
        groups.sort(key=lambda group: -group.count)
        page = _page(groups, cursor, limit)
        return Groups(page.items, page.cursor, len(self.by_id))

    async def remark(self, fingerprint: str, assignee: str, note: str, who: str) -> Remark:
        if not self._matching(LetterFilter(fingerprint=fingerprint)):
            raise RequestFailed(UNKNOWN, f"there is no dead letter of {fingerprint}")
        self._changed(who, "dead.remark", fingerprint, assignee=assignee, note=note)
        said = self.remarks[fingerprint] = Remark(assignee, note, who, NOW_MS)
        return said

    async def purge(self, filter: LetterFilter, *, all: bool, dry_run: bool, who: str) -> Purge:
        check_sweep(filter, all=all)
        found = self._matching(filter)
        if dry_run:
            return Purge(len(found), 0, True)
        for letter in found:
            del self.by_id[letter.id]
        self._changed(who, "dead.purge", "", count=len(found))
        return Purge(len(found), len(found), False)

    async def replay_start(
        self,
        filter: LetterFilter,
        options: ReplayOptions,
        *,
        all: bool,
        dry_run: bool,
        who: str,
    ) -> Replay:
        check_sweep(filter, all=all)
        check_edit(filter, options)
        found = self._matching(filter)
        job = Replay(
            id=None if dry_run else f"r{len(self.jobs) + 1}",
            state=JobState.PLANNED if dry_run else JobState.RUNNING,
            over=False,
            who=who,
            started=None if dry_run else NOW_MS,
            finished=None,
            filter=filter.model_dump(),
            options={**options.model_dump(), "data": options.data},
            total=len(found) if dry_run or self.has_counted else 0,
            sent=0,
            acked=0,
            died_again=0,
            skipped=sum(self.skips.values()),
            skips=self.skips,
            channels={"/orders": len(found)},
            receivers={"joe/1": len(found)},
            away=self.away,
            reason=None,
        )
        if job.id is not None:
            self.jobs[job.id] = job
            self._changed(who, "replay.start", job.id, total=job.total)
        return job

    async def replay(self, id: str) -> Replay:
        self._fail()
        if id not in self.jobs:
            raise RequestFailed(UNKNOWN, f"there is no replay {id}")
        self.looks += 1
        job = self.jobs[id]
        if job.state is JobState.RUNNING and self.has_counted:
            sent = min(job.sent + self.pace, job.total)
            job = self.jobs[id] = replace(job, sent=sent, acked=sent)
            if sent == job.total:
                job = self.jobs[id] = replace(job, state=JobState.DONE, over=True)
        return job

    async def replays(self) -> list[Replay]:
        return list(reversed(self.jobs.values()))

    async def replay_cancel(self, id: str, who: str) -> Replay:
        job = await self.replay(id)
        if job.state is JobState.DONE:
            raise RequestFailed(CONFLICT, "this replay is over")
        self._changed(who, "replay.cancel", id)
        self.jobs[id] = replace(job, state=JobState.CANCELLED, over=True)
        return self.jobs[id]

    async def export(self, filter: LetterFilter, who: str) -> AsyncIterator[bytes]:
        for n, letter in enumerate(self._matching(filter)):
            if n == self.breaks_after:
                raise RuntimeError("the store went away")
            yield orjson.dumps(letter)

    async def import_(self, lines: AsyncIterator[bytes], who: str) -> Import:
        imported = repeated = refused = number = 0
        refusals = []
        async for line in lines:
            number += 1
            try:
                letter = Letter(**orjson.loads(line))
            except (orjson.JSONDecodeError, TypeError) as error:
                refused += 1
                refusals.append(Refusal(number, type(error).__name__))
                continue
            repeated += letter.id in self.by_id
            imported += letter.id not in self.by_id
            self.by_id.setdefault(letter.id, letter)
        self._changed(who, "dead.import", "", imported=imported)
        return Import(imported, repeated, refused, refusals[:20])

    async def question(self, command: str, who: str) -> CommandReply:
        understood = understand(command)
        if understood.changes:
            raise illegal("this command changes something")
        return self._run(understood, who)

    async def command(self, command: str, value: str | None, who: str) -> CommandReply:
        return self._run(understand(command, value), who)

    def _run(self, command: Command, who: str) -> CommandReply:
        self._fail()
        name = command.absolute("holdfast")
        if command.changes:
            self._changed(who, "command", name, argument=command.value)
        if command.value is None:
            return CommandReply(name, "true")
        value = str(command.value).lower()
        return CommandReply(name, value, "OK", f"{name}={value}")

    async def upgrade(self) -> Upgrade:
        if self.layout == LAYOUT:
            return Upgrade(True, LAYOUT, LAYOUT, "", [])
        return Upgrade(False, self.layout, LAYOUT, "0.3", ["requests are apart"])

    async def finish_upgrade(self, who: str) -> Upgrade:
        self.layout = LAYOUT
        self._changed(who, "upgrade.finish", "store")
        return await self.upgrade()

    async def audit(self, cursor: str | None, limit: int, *, sort: str = "") -> Page[AuditEntry]:
        return _page(list(reversed(self.changes)), cursor, limit)

    def _fail(self) -> None:
        if self.fault is not None:
            raise self.fault


def _page(found: list[Item], cursor: str | None, limit: int) -> Page[Item]:
    start = int(cursor or 0)
    end = start + limit
    return Page(found[start:end], str(end) if end < len(found) else None)


def _summary(session: Session) -> SessionSummary:
    return SessionSummary(**{n: getattr(session, n) for n in SessionSummary.__dataclass_fields__})
