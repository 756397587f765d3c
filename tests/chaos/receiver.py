"""Receivers that send their verdicts with the next connect."""

import asyncio
import zlib
from collections.abc import Coroutine, Sequence
from typing import Any

from tests.chaos.history import Begun, HistoryWriter, What
from tests.chaos.manners import HOLDBACK, REFUSALS, STOPS, STUMBLE, Entry, Manner
from tests.chaos.publisher import fingerprint
from tests.chaos.talker import Denied, Lost, Message, Talker, reply_to

CONNECT = "/meta/connect"
FAR_BEYOND = 1_000_000
AWAY_S = 0.2


class Receiver:
    """One subscriber, with a name that it keeps or one that the server gives."""

    def __init__(
        self,
        name: str,
        talker: Talker,
        history: HistoryWriter,
        *,
        channels: Sequence[str],
        manner: Manner,
        is_named: bool = True,
    ) -> None:
        self.name = name
        self.is_held = False
        self.accepted = 0
        # When it began the newest of those connects that were answered.
        self.asked_ns = 0
        self.is_subscribed = asyncio.Event()
        self._over = asyncio.Event()
        self._talker = talker
        self._history = history
        self._channels = channels
        self._manner = manner
        self._is_named = is_named
        self._ack = 0
        self._answers = 0
        self._entries: list[Entry] = []
        self._subscribed: set[str] = set()
        # What was processed stays processed, whatever becomes of the session.
        self._finished: set[tuple[str, int]] = set()
        self._stopped_at: set[str] = set()
        self._is_leaving = False
        # The cursor up to which it has everything; -2: from the oldest message on.
        self._cursor: int | None = -2 if manner.goes_on else None

    @property
    def limit(self) -> int:
        """How many entries may wait for it; 0: as many as the server allows."""
        limit: int = self._manner.options.get("queue", {}).get("maxEntries", 0)
        return limit

    @property
    def is_there(self) -> bool:
        """Whether it has a session with all its subscriptions, and gets what there is."""
        has_session = self._talker.client_id is not None and not self._is_leaving
        return has_session and self._subscribed.issuperset(self._channels) and not self.is_held

    async def run(self, stop: asyncio.Event) -> None:
        """Receive until told to stop, then send the last verdicts."""
        self._over = stop
        try:
            while not stop.is_set():
                await self.step()
            if self._entries and self._talker.client_id is not None:
                await self._try(self._connect(timeout_ms=0))
        finally:
            await self._talker.close()

    async def step(self) -> None:
        """One request."""
        if self._talker.client_id is None:
            await self._try(self._begin())
        elif self._is_leaving:
            await self._leave()
        elif self.is_held:
            await self._sit_out()
        else:
            # After a verdict that stops delivery, a held connect would only take time.
            await self._try(self._connect(timeout_ms=0 if self._stops else None))

    @property
    def _stops(self) -> bool:
        return bool(self._entries) and self._entries[-1].code in STOPS

    @property
    def _wants_hold(self) -> bool:
        return self._stops and self._entries[-1].code == HOLDBACK

    async def _try(self, attempt: Coroutine[Any, Any, None]) -> None:
        try:
            await attempt
        except Lost:
            await asyncio.sleep(0.05)
        except Denied as denied:
            if denied.is_session_unknown:
                self._forget_session()
            await asyncio.sleep(0.05)

    async def _begin(self, **options: Any) -> None:
        """A session: the old one if the server still has it."""
        self._entries.clear()
        ext: dict[str, Any] = {}
        if self._manner.acks:
            ext["ack"] = True
        if self._manner.gives_verdicts:
            ext["delivery"] = {**self._manner.options, **options}
            if self._is_named:
                ext["delivery"]["session"] = self.name
        reply = await self._talker.handshake(ext)
        self._ack = 0
        answered = (reply.get("ext") or {}).get("delivery") or {}
        if not answered.get("resumed"):
            self._subscribed.clear()
        for channel in self._channels:
            await self._subscribe(channel)
        self.is_subscribed.set()

    async def _subscribe(self, channel: str) -> None:
        if channel in self._subscribed:
            return
        fields = {"subscriber": self.name, "channel": channel, "is_durable": self._is_constant}
        what = What.SUBSCRIBE if self._cursor is None or self._cursor < 0 else What.GO_ON
        begun = self._history.begin(self.name, what, **fields, cursor=self._cursor)
        try:
            reply = await self._talker.subscribe(channel, self._cursor)
        except Exception:
            # Without all its subscriptions it is no session of ours.
            self._forget_session()
            begun.info()
            raise
        self._subscribed.add(channel)
        begun.ok(**(reply.get("ext") or {}).get("replay", {}))

    def _forget_session(self) -> None:
        self._talker.client_id = None
        if not self._is_named and self._subscribed:
            if not self._is_constant:
                self._history.note(self.name, What.SESSION_LOST, subscriber=self.name)
            self._subscribed.clear()

    @property
    def _is_constant(self) -> bool:
        """Whether it gets what is published between its sessions."""
        return self._is_named or self._manner.goes_on

    async def _leave(self) -> None:
        """End the session, and forget what was in flight."""
        self._is_leaving = False
        self._entries.clear()
        begun = self._history.begin(self.name, What.END, subscriber=self.name)
        ext = {"delivery": {"end": True}} if self._is_named else {}
        try:
            channel = "/meta/disconnect"
            reply_to(channel, await self._talker.ask({"channel": channel, "ext": ext}))
        except (Lost, Denied) as error:
            begun.info(error=str(error))
        else:
            begun.ok()
        self._forget_session()
        self._subscribed.clear()
        await asyncio.sleep(AWAY_S)

    async def _connect(self, timeout_ms: int | None = None) -> None:
        """Connect with the verdicts on the last batch, and get the next one."""
        is_lie = self._is_time(self._manner.lies_after)
        said = [] if is_lie else self._begin_to_say()
        ext = {"ack": FAR_BEYOND} if is_lie else self._ext()
        begun = self._history.begin(
            self.name, What.CONNECT, client=str(self._talker.sessions), ack=ext.get("ack")
        )
        message: dict[str, Any] = {
            "channel": CONNECT,
            "connectionType": self._talker.connection_type,
            "ext": ext,
        }
        if timeout_ms is not None:
            message["advice"] = {"timeout": timeout_ms}
        try:
            found = await self._talker.ask(message)
            reply = reply_to(CONNECT, found)
        except Denied as denied:
            for each in (*said, begun):
                # Who is sent away while the connect is held had been listened to.
                tell = each.info if denied.is_session_unknown else each.fail
                tell(error=denied.error)
            raise
        except Lost as lost:
            for each in (*said, begun):
                each.info(error=str(lost))
            raise
        for each in said:
            each.ok()
        batch = (reply.get("ext") or {}).get("ack")
        begun.ok(batch=batch)
        self.asked_ns = begun.at_ns
        self._go_on(batch)
        if self._cursor is not None:
            self._cursor = reply["ext"]["replay"]["cursor"]
        self._take([each for each in found if "data" in each], begun.at_ns)

    def _begin_to_say(self) -> list[Begun]:
        if not self._entries:
            return []
        entries = [entry.to_json() for entry in self._entries]
        begin = self._history.begin
        said = [begin(self.name, What.SETTLE, subscriber=self.name, entries=entries)]
        if self._wants_hold:
            said.append(begin(self.name, What.HOLD, subscriber=self.name, by="verdict"))
        return said

    def _ext(self) -> dict[str, Any]:
        ext: dict[str, Any] = {"ack": self._ack} if self._manner.acks else {}
        speaks = self._manner.is_explicit or not self._manner.acks
        verdicts = [entry.verdict() for entry in self._entries if entry.code or speaks]
        if verdicts and self._manner.gives_verdicts:
            ext["delivery"] = {"verdicts": verdicts}
        return ext

    def _go_on(self, batch: int | None) -> None:
        """The server has the verdicts now."""
        self.is_held = self.is_held or self._wants_hold
        self.accepted += sum(not entry.code for entry in self._entries)
        self._entries.clear()
        if batch is not None:
            self._ack = batch
        self._answers += 1

    def _is_time(self, after: int) -> bool:
        return after > 0 and self._answers % after == after - 1

    def _take(self, events: list[Message], asked_ns: int) -> None:
        entries = [self._note(event, asked_ns) for event in events]
        is_deadly = any(entry.tag == self._manner.dies_of for entry in entries)
        if is_deadly or self._is_time(self._manner.crashes_after):
            self._forget_session()
            return
        self._is_leaving = self._is_time(self._manner.leaves_after)
        for entry in entries:
            done = self._work(entry)
            self._entries.append(done)
            if done.code in STOPS:
                break

    def _note(self, event: Message, asked_ns: int) -> Entry:
        known: dict[str, Any] = {}
        if self._manner.gives_verdicts:
            known = (event.get("ext") or {}).get("delivery") or {}
        data = event["data"]
        entry = Entry(data.get("tag", ""), known.get("generation", 0), known.get("seq", 0))
        self._history.note(
            self.name,
            What.DELIVER,
            subscriber=self.name,
            tag=entry.tag,
            generation=entry.generation,
            channel=event["channel"],
            sha=fingerprint(data),
            seq=entry.seq,
            redelivered=known.get("redelivered", 0) if self._manner.gives_verdicts else None,
            asked=asked_ns,
            timeout_ms=self._manner.timeout_ms,
            received=known.get("rcvTimestamp", ""),
        )
        return entry

    def _work(self, entry: Entry) -> Entry:
        """Process the entry as this receiver's manner says."""
        copy = (entry.tag, entry.generation)
        if copy in self._finished or not self._manner.gives_verdicts:
            return entry
        chance = zlib.crc32(f"{self.name} {entry.tag}".encode())
        for code, one_in in (
            (HOLDBACK, self._manner.holds_back_at),
            (STUMBLE, self._manner.stumbles_at),
        ):
            if is_one_in(one_in, chance) and entry.tag not in self._stopped_at:
                self._stopped_at.add(entry.tag)
                return Entry(*copy, entry.seq, code)
        # A replayed message is not refused again.
        if is_one_in(self._manner.refuses_one_in, chance // 7) and not entry.generation:
            return Entry(*copy, entry.seq, REFUSALS[chance % len(REFUSALS)])
        self._finished.add(copy)
        return entry

    async def _sit_out(self) -> None:
        """Connects go on while held back; then the receiver asks for more."""
        now_s = asyncio.get_running_loop().time
        until_s = now_s() + self._manner.held_s
        while now_s() < until_s and self._talker.client_id is not None:
            if self._over.is_set():
                return
            await self._try(self._connect(timeout_ms=200))
        while self.is_held and not self._over.is_set():
            await self._try(self._resume())

    async def _resume(self) -> None:
        begun = self._history.begin(self.name, What.RESUME, subscriber=self.name)
        await self._begin(dispatcherActive=True)
        self.is_held = False
        begun.ok()


def is_one_in(count: int, chance: int) -> bool:
    return count > 0 and chance % count == 0
