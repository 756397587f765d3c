"""What can be looked at of the running server: figures, channels, and where a message is."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from heapq import nsmallest
from itertools import islice
from typing import Literal, cast

from app.bayeux.server import Bayeux
from app.bayeux.sessions import Session
from app.bayeux.standing import hold_of
from app.journal.schema import Event
from app.journal.tracing import events_of
from app.store.audit import Audit
from app.store.journal_frames import JournalFrames
from app.store.letter_search import LetterFilter
from app.store.letters import Letters
from app.store.pipeline_results import PipelineResults
from app.store.replays import Replays
from app.web.admin import showing
from app.web.admin.changes import asking
from app.web.admin.figures import FigureDesk
from app.web.admin.live_letters import LiveLetters
from app.web.admin.operations import UNKNOWN_RESULT, OperationFailed
from app.web.admin.shapes import LetterSummary, Page
from app.web.admin.sights import (
    About,
    ChannelSummary,
    Figures,
    Happening,
    PipelineResult,
    Trace,
    Whereabouts,
)

_NS_PER_MS = 1_000_000
# Entries looked at before others may go on.
_STRETCH = 20_000
_MOST_QUEUES = 1000
_MOST_LETTERS = 100
# Steps of letters, and frames of the journal, that one request looks at.
_LETTER_STEPS = 20
_FRAMES = 100


@dataclass(frozen=True, slots=True)
class _Letters:
    """Dead letters of one message, and whether there may be others."""

    found: list[LetterSummary]
    is_cut: bool


_NO_LETTERS = _Letters([], is_cut=False)


@dataclass(frozen=True, slots=True)
class Sources:
    """What is read besides sessions and letters."""

    desk: FigureDesk
    frames: JournalFrames
    results: PipelineResults
    version: str
    keeps_journal: bool


class LiveSights(LiveLetters):
    """The part of `Operations` that changes nothing."""

    def __init__(
        self,
        bayeux: Bayeux,
        clock: Callable[[], float],
        letters: Letters,
        age_ms: int,
        replays: Replays,
        audit: Audit,
        sources: Sources,
    ) -> None:
        super().__init__(bayeux.node.name, letters, age_ms, replays, audit)
        self._bayeux = bayeux
        self._clock = clock
        self._sources = sources
        self._started = bayeux.node.now_ms()

    def _wake(self) -> None:
        """The server learns what time it is, as it does with every request."""
        self._bayeux.now = self._clock()

    async def figures(self) -> Figures:
        return await self._sources.desk.read()

    async def about(self, who: str) -> About:
        role = cast("Literal['reader', 'operator']", who.partition("/")[0])
        return About(
            role=role,
            who=who,
            node=self._node,
            version=self._sources.version,
            started=self._started,
            now=self._bayeux.node.now_ms(),
            journal=self._sources.keeps_journal,
        )

    async def pipeline_result(self, name: str) -> PipelineResult:
        with asking():
            found = await self._sources.results.get(name)
        if found is None:
            text = f"the pipeline has not written {name} yet: holdfast pipeline ingest"
            raise OperationFailed(UNKNOWN_RESULT, text)
        return PipelineResult(**found)

    # Channels

    async def channels(self, prefix: str, cursor: str | None, limit: int) -> Page[ChannelSummary]:
        hub, held = self._bayeux.hub, self._bayeux.guard.held
        rates = None if hub.watch is None else hub.watch.rates
        sizes = dict(hub.routes.sizes())
        names = sizes.keys() | (rates or {}).keys() | held.keys()
        after = cursor or ""
        fit = (name for name in names if name > after and name.startswith(prefix))
        found = nsmallest(limit + 1, fit)
        items = [
            ChannelSummary(
                name,
                sizes.get(name, 0),
                None if rates is None else round(rates.get(name, 0.0), 2),
                name in held,
            )
            for name in found[:limit]
        ]
        return Page(items, found[limit - 1] if len(found) > limit else None)

    # One message

    async def trace(self, message: str, cursor: str | None) -> Trace:
        node, _, number = message.rpartition("-")
        id = int(number)
        with asking():
            frames = await self._sources.frames.since(node, id // _NS_PER_MS, cursor, _FRAMES)
        events = await asyncio.to_thread(events_of, id, [frame for _, frame in frames])
        is_first = cursor is None
        queues = await self._queues(id) if is_first and node == self._node else []
        letters = await self._letters_of_message(id) if is_first else _NO_LETTERS
        is_known = bool(queues or letters.found or events)
        return Trace(
            id=message,
            published=id // _NS_PER_MS if is_known else None,
            journal=self._sources.keeps_journal,
            queues=queues[:_MOST_QUEUES],
            letters=letters.found[:_MOST_LETTERS],
            is_cut=letters.is_cut or len(queues) > _MOST_QUEUES,
            happenings=[_happening(event) for event in events],
            cursor=frames[-1][0] if len(frames) == _FRAMES else None,
        )

    async def _queues(self, id: int) -> list[Whereabouts]:
        """Whose queue has it, one more than are told at most.

        A queue is searched at one moment, all of them are not.
        """
        found: list[Whereabouts] = []
        looked_at = 0
        for session in list(self._bayeux.sessions):
            found += islice(_places(session, id), 1)
            looked_at += session.queue.count + 1
            if len(found) > _MOST_QUEUES:
                break
            if looked_at > _STRETCH:
                looked_at = 0
                await asyncio.sleep(0)
        return found

    async def _letters_of_message(self, id: int) -> _Letters:
        """Nothing dies before it was published: of the letters since then a bounded number."""
        found: list[LetterSummary] = []
        steps = 0
        with asking():
            async for letters, _ in self._search.scan(LetterFilter(since=id // _NS_PER_MS)):
                if steps == _LETTER_STEPS or len(found) > _MOST_LETTERS:
                    return _Letters(found, is_cut=True)
                found += [
                    showing.letter_summary(self._node, letter, self._age_ms)
                    for letter in letters
                    if letter.message == id
                ]
                steps += 1
        return _Letters(found, is_cut=len(found) > _MOST_LETTERS)


def _places(session: Session, id: int) -> Iterator[Whereabouts]:
    queue = session.queue
    if not queue.count:
        return
    is_held = hold_of(session) is not None
    waiting = queue.waiting
    if any(message.id == id for message in waiting):
        yield Whereabouts(
            receiver=session.key, state="waiting", held=is_held, attempts=0, redelivered=0
        )
        return
    if queue.count == len(waiting):
        return
    in_hands = queue.handed
    for entry in (*in_hands.values(), *queue.returned.values()):
        if entry.message.id == id:
            yield Whereabouts(
                receiver=session.key,
                state="handed" if entry.seq in in_hands else "waiting",
                held=is_held,
                attempts=entry.attempts,
                redelivered=entry.redelivered,
            )


def _happening(event: Event) -> Happening:
    return Happening(
        at_us=event.ts,
        node=event.node,
        kind=event.kind,
        receiver=event.receiver,
        channel=event.channel,
        attempt=event.attempt,
        code=event.code,
        letter=None if event.letter is None else f"{event.letter:019d}",
        copies=event.copies,
        sender=event.sender,
    )
