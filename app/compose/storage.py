"""Opens, loads and watches the store: an embedded Valkey or an external server."""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from holdfast.bayeux.leaving.giving import given
from holdfast.bayeux.leaving.taking import Taking
from holdfast.bayeux.leaving.unusable import Faults
from holdfast.bayeux.server import Bayeux
from holdfast.bayeux.session import Session
from holdfast.bayeux.state.changed_session import ChangedSession
from holdfast.bayeux.state.kept_requests import fields_of, fields_of_all, rejoin, reopen_all
from holdfast.bayeux.state.requests_in_records import record_again, record_requests, stop_recording
from holdfast.compose.cannot_start import CannotStart
from holdfast.compose.data_directory import DataDirectory
from holdfast.compose.directory_watch import DirectoryWatch
from holdfast.compose.placement import Placement
from holdfast.compose.store_monitor import StoreMonitor
from holdfast.delivery.basics.node import Node, TimestampSource
from holdfast.delivery.messages.given import Given, GivenKind
from holdfast.delivery.messages.letter_quota import LetterLimits, LetterQuota
from holdfast.settings import Settings
from holdfast.store.format.deployment import UNDIVIDED, Origin
from holdfast.store.format.keys import RedisKeys
from holdfast.store.format.layouts import LAYOUT
from holdfast.store.format.opening_scripts import finish_upgrade
from holdfast.store.given_slices import GivenSlices, GivenUnreadable
from holdfast.store.links.link import StoreLink
from holdfast.store.links.primary import Primary
from holdfast.store.links.reader import Reader
from holdfast.store.local.embedded import EmbeddedValkey
from holdfast.store.opening.asking_to_open import Claimed, OnWaiting, Opening, random_seed
from holdfast.store.opening.lease import Lease, boot_clock
from holdfast.store.store import Store
from holdfast.store.writing.reconciliation import Knowledge, KnownQueue
from holdfast.units import counted
from holdfast.web.scheduling.speaking import LeavableRight, ShardRight, own_right
from holdfast.web.tasks import cancel, task_of

if TYPE_CHECKING:
    from holdfast.delivery.messages.message import Message
    from holdfast.store.opening.all_shards import Gate
    from holdfast.store.writing.replicas import Replicas

log = logging.getLogger(__name__)

_CLOSING_S = 2.0
# How many sessions are restored before other work gets a turn.
_AT_ONCE = 200


class Storage:
    """The open store of this process."""

    def __init__(
        self,
        primary: Primary,
        link: StoreLink,
        keys: RedisKeys,
        settings: Settings,
        placement: Placement,
        origin: Origin,
        directory: DataDirectory,
        on_end: Callable[[], None],
        replicas: "Replicas | None",
        embedded: EmbeddedValkey | None,
        *,
        is_successor: bool,
        monitor: StoreMonitor,
        gate: "Gate | None" = None,
        on_lost: Callable[[], bool] | None = None,
        on_waiting: OnWaiting | None = None,
        claimed: Claimed | None = None,
    ) -> None:
        self.origin = origin
        self.monitor = monitor
        monitor.on_back = self.is_back
        self.primary = primary
        self.link = link
        self._on_end, self._on_lost = on_end, on_lost
        # The newest timestamp in the store is known when it is open.
        self.stamps = TimestampSource(0, time.time_ns, placement.number)
        # Whether another process has opened the store.
        self.is_fenced = False
        # No other process can open an embedded store: the lock of its directory is the lease.
        self._lease = Lease(boot_clock()) if embedded is None else None
        self.right: LeavableRight = self._lease or own_right(boot_clock(), placement.is_alone)
        # Set when there are too many dead letters, or their number is unknown.
        self.has_excess = asyncio.Event()
        self.store = Store(
            link,
            keys,
            opening=Opening(
                placement.node(settings.node),
                origin.deployment,
                lock=directory.lock_name if embedded is None else "",
                is_standby=settings.standby,
                gate=gate,
                on_waiting=on_waiting,
                division=UNDIVIDED if placement.number else origin.division,
                seed=lambda: origin.seed or random_seed(),
                host=placement.host,
                claimed=claimed,
            ),
            stamp=self.stamps,
            know=self._know,
            on_told=self.is_back,
            on_fenced=self._fenced,
            confirm=None if replicas is None else replicas.confirm,
            most_keys=settings.max_publish_keys,
            letter_quota=LetterQuota(
                LetterLimits(
                    count=settings.dead_letter_count,
                    bytes=settings.dead_letter_bytes,
                    share=settings.dead_letter_share_bytes,
                ),
                on_excess=self.has_excess.set,
            ),
            has_log=not placement.is_alone,
        )
        self._slices = GivenSlices(self.store)
        # If another process goes on unless this one starts, everything must be readable.
        self._faults = Faults(CannotStart if is_successor else None)
        self._given: Sequence[Given] = ()
        # Up to where the process before this one had shown the logs of other shards; None if it has
        # left nothing.
        self.shown: Mapping[int, str] | None = None
        self._embedded = embedded
        # Raises must not wait behind anything else.
        self._lease_reader = Reader(primary)
        self.replicas = replicas
        self._gate = gate
        self._keepers: list[asyncio.Task[None]] = []
        self._watch: DirectoryWatch | None = None
        self._watching: asyncio.Task[None] | None = None
        self._bayeux: Bayeux | None = None
        self._is_loaded = False
        # Whether this process must stop its Valkey, or end its lease: once it is sure to go on.
        self._serves = not is_successor

    def serve(self) -> None:
        """Go on for good: nothing that could fail is left."""
        self._serves = True

    async def open(self) -> None:
        """Take the store over: from now on no other process writes."""
        if self._embedded is not None and not self._embedded.is_managed:
            await self._embedded.open()
        self.stamps.go_on_after(await self.store.open())
        if self._lease is not None:
            # It may have waited for another server.
            self._lease.begin()
        self._keep_lease()
        await self._read_given()

    @property
    def goes_on(self) -> bool:
        """Whether this process goes on with everything that the one before it had in memory."""
        return self.shown is not None

    async def _read_given(self) -> None:
        """Read what the process before this one gave."""
        try:
            self._given = await self._slices.take(self._faults.note)
        except GivenUnreadable as error:
            self._faults.note("what it had in memory", error)
        for each in self._given:
            if each.kind is GivenKind.SERVER:
                # An earlier release does not say it.
                self.shown = {int(shard): at for shard, at in each.fields.get("shown", {}).items()}
                self.stamps.go_on_after(each.fields["newest"])

    def _keep_lease(self) -> None:
        """Keep proving that no other process has opened the store."""
        if self._lease is None:
            return
        keeping = [self.store.lease_keeper(self._lease, self._lease_reader).run()]
        if self._gate is not None:
            self._gate.on_lost = self._lost_to
            keeping.append(self._gate.watch())
        self._keepers = [task_of(each, self.lost_keeper) for each in keeping]

    def lost_keeper(self, error: Exception) -> None:
        """End: nothing would notice that another process has opened the store."""
        log.critical("the lease of the store is kept no more: this server ends", exc_info=error)
        self.end()

    def before_speaking(self, catch_up: Callable[[Callable[[], None]], None]) -> None:
        """Let this process catch up before it speaks again after a silence."""
        if self._gate is not None and self._lease is not None:
            catch_up = self._gate.before_speaking(catch_up, self._lease)
        if isinstance(self.right, Lease | ShardRight):
            self.right.catch_up = catch_up

    async def _leave_lease(self) -> None:
        while self._keepers:
            await cancel(self._keepers.pop())
        self._lease_reader.close()
        if self._gate is not None:
            self._gate.close()

    async def close(self) -> None:
        """End the connection to the store, after everything is written."""
        await self._leave_lease()
        waits_s = _CLOSING_S if self._is_loaded or self.link.is_up else 0.0
        # Otherwise, the process before this one takes it back.
        await self.store.close(waits_s, releases=self._serves)
        if self._embedded is not None and not self._serves:
            await self._embedded.let_go()

    async def give(self) -> None:
        """Let a successor open the store. This process must be silent."""
        await self._leave_watch()
        await self.store.give()
        await self._leave_lease()
        if self._embedded is not None:
            await self._embedded.let_go()

    async def offer_to(self, host: str) -> bool:
        """Offer the store, which this process has given, to another host for some seconds.

        Returns whether that host, or anybody, has opened it. Raises `StoreUnavailable`.
        """
        from holdfast.store.opening.offer import is_taken

        return await is_taken(self.primary, self.store.keys, self.store.epoch, host)

    async def take_back(self) -> None:
        """Have the store again, which was given to a process that has ended since.

        The giving may have failed half-way.
        """
        if self._embedded is not None and not self._embedded.is_managed:
            await self._embedded.open()
        await self.store.take_back()
        if not self._keepers:
            self._keep_lease()
        self._keep_watching()

    @property
    def complaint(self) -> str | None:
        """Return why replies wait, or None."""
        if self.right.is_silent:
            return "silent: the store does not confirm that no other server has opened it"
        return None

    def _lost_to(self, node: str) -> None:
        """End: another server has the first shard, and with it the deployment."""
        if not self.is_fenced:
            log.error("another server, %s, has the first shard: it takes this one, too", node)
            self._fenced()

    def _fenced(self) -> None:
        """End: another server has this shard. With an external store, it is to have all.

        On a host of several, others are to have the connections before.
        """
        may_part = self._on_lost is not None and self._lease is not None and self._on_lost()
        self._fall_silent()
        if not may_part:
            self._on_end()

    def end(self) -> None:
        """Speak no more, and end this process: another one has opened the store, or may."""
        self._fall_silent()
        self._on_end()

    def _fall_silent(self) -> None:
        self.is_fenced = True
        if self._lease is not None:
            self._lease.end()

    def watch(self, directory: DataDirectory, stack: AsyncExitStack) -> DirectoryWatch:
        """Start watching the directories that the server depends on."""
        directories, link = [directory.is_there], None
        if self._embedded is not None:
            directories.append(self._embedded.is_there)
            link = self.link
        self._watch = DirectoryWatch(directories, self.store, link)
        self._keep_watching()
        stack.push_async_callback(self._leave_watch)
        return self._watch

    def _keep_watching(self) -> None:
        if self._watch is not None and self._watching is None:
            self._watching = asyncio.create_task(self._watch.run())

    async def _leave_watch(self) -> None:
        """Watch no longer: from now on another process has the directories."""
        if self._watching is not None:
            await cancel(self._watching)
            self._watching = None

    def node(self, name: str) -> Node:
        """Return this server, whose clock goes on after what is stored."""
        stamps = self.stamps
        return Node(name, stamps, self.store.deployment.name, stamps.hear, stamps.read)

    async def check(self) -> None:
        """Read everything that the store has, so that nothing is found unreadable later.

        Raises `CannotStart`.
        """
        loading = self.store.loading()
        async for keys, are_readable in loading.session_keys():
            if keys > are_readable:
                raise CannotStart(_unreadable(f"session {min(keys - are_readable)}"))
        async for page in loading.entries():
            for id, (is_readable, _) in page.items():
                if not is_readable:
                    raise CannotStart(_unreadable(f"message {id}"))

    async def write_given(self, bayeux: Bayeux, now: float, shown: Mapping[int, str]) -> None:
        """Write everything in memory that the store lacks, for the next process.

        The server has come to rest: `settle` and `unsettled`. From now on it changes nothing.
        Raises `StoreUnavailable`.

        Args:
            shown: What `Sharding.shown` returns; empty without other shards.
        """
        await self._slices.write(given(bayeux, now, shown))

    async def remove_given(self) -> None:
        """Remove it before this process serves: from then on, sessions change.

        Raises `StoreUnavailable`.
        """
        await self._slices.drop()

    def revoke_given(self) -> None:
        """Remove it, before anything else is written, because this process goes on."""
        self._slices.revoke()

    async def load(self, bayeux: Bayeux, clock: Callable[[], float]) -> None:
        """Restore the sessions that the process before this one stored or gave, with their queues.

        Raises `CannotStart` if a successor cannot use something.
        """
        self._bayeux = bayeux
        state, journal = bayeux.state, bayeux.state.journal
        bayeux.life.topics.expect(await self.store.loading().topics())
        state.histories.floors.restore(
            await self.store.loading().floors(), state.rules.fingerprint()
        )
        taking = Taking(bayeux, self._given, clock(), self._faults)
        self._given = ()
        count = 0
        requests: dict[str, bytes] = {}
        # Sessions whose stored records have requests.
        recorded: list[Session] = []
        are_recorded = self.store.layout.form.has_requests_in_sessions
        async for loaded in self.store.load(taking.without_session):
            # The clocks of restored sessions start now.
            session = taking.restore(loaded.record, loaded.entries, clock())
            journal.session(session, "resumed")
            count += 1
            if loaded.record.requests:
                fields = fields_of(loaded.record)
                requests |= fields
                self.store.save_requests(fields)
                recorded.append(session)
        for session in taking.rest(clock()):
            journal.session(session, "resumed")
            count += 1
            if count % _AT_ONCE == 0:
                await asyncio.sleep(0)
        if are_recorded:
            record_requests(state.requests, self._save)
        reopen_all(state, requests | await self.store.loading().requests(), clock())
        record_again(state.requests, recorded, self._save)
        rejoin(state.requests, [*state.sessions, *state.waiting_places.queues()])
        taking.finish()
        if count:
            log.info("restored %s", counted(count, "session"))
        for channel, held in (await self.store.loading().held_channels()).items():
            if state.guard.restore(channel, held, clock()):
                log.warning("a channel is still held: %s", held.reason)
            else:
                self.store.release(channel)
        bayeux.life.topics.restore()
        self._is_loaded = True

    def _save(self, session: Session) -> None:
        if self._bayeux is not None:
            self.store.save(ChangedSession(session, self._bayeux.state.node))

    async def finish_upgrade(self) -> None:
        """Put the store into the newest layout. Raises `StoreUnavailable`."""
        await self.store.run(finish_upgrade(self.store.keys))
        self.store.layout.enter(LAYOUT)
        if self._bayeux is not None:
            state = self._bayeux.state
            stop_recording(state.requests, state.sessions, self._save)

    def is_back(self) -> None:
        """Hand over what waited for the store."""
        if self._bayeux is not None:
            self._bayeux.life.store_is_back()

    def _know(self) -> Knowledge | None:
        """Return everything in memory that the store must have."""
        if self._bayeux is None or not self._is_loaded:
            return None
        state, life = self._bayeux.state, self._bayeux.life
        durable = [session for session in state.sessions if session.is_durable]
        histories: dict[str, list[Message]] = {}
        for message in state.hub.histories:
            if message.is_durable:
                histories.setdefault(message.channel, []).append(message)
        return Knowledge(
            sessions=[ChangedSession(session, state.node) for session in durable],
            queues=[
                *map(_known_queue, durable),
                *map(_known_queue, state.waiting_places.queues()),
                *(KnownQueue(name, kept, tuple) for name, kept in histories.items()),
            ],
            holds={**state.guard.held},
            topics=life.topics.records(),
            requests=fields_of_all(state.requests),
            floors=state.histories.stored_floors(),
        )


def _unreadable(name: str) -> str:
    return (
        f"{name} in the store is unreadable. To go on without it, stop the server and start it "
        "again: it stays in the store"
    )


def _known_queue(receiver: Session) -> KnownQueue:
    queue = receiver.queue
    durable = [message for message in queue.messages() if message.is_durable]
    return KnownQueue(receiver.key, durable, queue.tried)
