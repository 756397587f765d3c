"""The right to write to the store, which one process has at a time."""

import asyncio
import logging
import secrets
from collections import deque
from collections.abc import Callable, Collection
from enum import Enum
from functools import partial
from typing import cast

from holdfast.store.format.deployment import Deployment
from holdfast.store.format.keys import RedisKeys
from holdfast.store.format.layouts import LAYOUT, OLDEST_LAYOUT, CurrentLayout, readers_of
from holdfast.store.format.opening_scripts import open_store
from holdfast.store.format.publish_keys import StoreClock
from holdfast.store.links.connection import StoreUnavailable
from holdfast.store.links.link import Answer, StoreLink, set_answer
from holdfast.store.links.reply_errors import ScriptFailed, WentBack
from holdfast.store.opening.all_shards import Look
from holdfast.store.opening.asking_to_open import Claimed, Opening, ShardElsewhere
from holdfast.store.opening.lease import BLIND_S, SPEAK_S, RivalLease, boot_clock

log = logging.getLogger(__name__)

_PAUSE_S = 1.0
# How often a process looks whether another one still raises its lease.
_LOOK_S = 0.25
# Those in the store, and some of this process.
_MOST_FORMER = 1064
_MOST_OWN = 64
# What an operator should know and do.
_ADVICE = (
    "Remarks, and dead letters and publish keys older than 10 s, may be missing: see"
    ' docs/explanation/durability.md, "A store that goes back"'
)


class StoreState(Enum):
    """The relation of this process to the store."""

    NEW = "new"
    OPEN = "open"
    # The store was emptied, or went back to an earlier state.
    LOST = "lost"
    # It is being opened again.
    OPENING = "opening"
    # It is open again, and is told what it lost.
    TOLD = "told"
    # Another process has opened it since.
    FENCED = "fenced"
    # A successor of this process may open it. This process writes nothing, unless it takes the
    # store back.
    GIVEN = "given"


class WriteRight:
    """Opens the store for this process, and reopens it if it lost something in use.

    Args:
        clock: Continues from the time in the store.
        stamp: Returns a new id; None if this process gives none.
        on_lost: Called when the store refuses this process, which may not write now.
        on_opened: Called with the epoch before anything is written in it.
        on_again: Called when a store that had lost something is open again: tell it everything,
            then call `resume`.
        on_fenced: Called when another process has opened the store.
    """

    def __init__(
        self,
        link: StoreLink,
        keys: RedisKeys,
        *,
        opening: Opening,
        clock: StoreClock,
        on_opened: Callable[[str], None],
        on_lost: Callable[[], None],
        on_again: Callable[[], None],
        on_fenced: Callable[[], None],
        stamp: Callable[[], int] | None = None,
    ) -> None:
        self._link = link
        self._keys = keys
        self._opening = opening
        # What the store has, once it is open.
        self.deployment = opening.deployment
        self.layout = CurrentLayout()
        self._clock = clock
        self._stamp = stamp
        self._on_opened = on_opened
        self._on_lost = on_lost
        self._on_again = on_again
        self._on_fenced = on_fenced
        self._loop = asyncio.get_running_loop()
        self.state = StoreState.NEW
        # Whether this process has the store: the state is OPEN or TOLD.
        self.is_open = False
        # Whether it may write now: the state is OPEN, or it is TOLD and its writes go first.
        self.may_write = False
        self.epoch = ""
        # The number of this epoch.
        self._number = 0
        # How often the store has lost changes.
        self.losses = 0
        # The latest epochs before that, of this process and of others. A store that has one of them
        # went back.
        self._former: deque[str] = deque(maxlen=_MOST_FORMER)
        # The epochs of this process, the present one included.
        self._own: deque[str] = deque(maxlen=_MOST_OWN)
        # Whether the lease of this process was confirmed, or it needs none. Before, it has said and
        # accepted nothing: it may have opened a former primary, which is cut off.
        self.was_confirmed = not opening.lock

    @property
    def incarnation(self) -> str:
        """The random text of this epoch."""
        return self.epoch.rpartition(".")[2]

    async def look(self) -> None:
        """Learn the deployment and the epoch of a store that another process has open."""
        names = ("version", "epoch", "deployment", "key", "holder")
        reply = await self._link.ask("HMGET", self._keys.meta, *names)
        version, epoch, name, key, holder = cast("list[bytes | None]", reply)
        is_ours = (holder or b"").decode() == self._opening.lock
        if version is None or epoch is None or name is None or key is None or not is_ours:
            raise StoreUnavailable(
                "the running server has another store: stop it, and start this one instead of a "
                "restart"
            )
        if int(version) > LAYOUT:
            raise StoreUnavailable(_other_version(f"layout {int(version)}"))
        self.epoch = epoch.decode()
        self.deployment = Deployment(name.decode(), bytes.fromhex(key.decode()))

    async def open(self) -> int:
        """Become the only writer. Returns an id; new ones must be above it."""
        reply = await self._wait_for_lease()
        if isinstance(reply, ScriptFailed) and reply.code == "VERSION":
            raise StoreUnavailable(_other_version(str(reply)))
        if isinstance(reply, ScriptFailed) and reply.code == "DEPLOYMENT":
            name = str(reply).partition(" ")[2]
            raise StoreUnavailable(
                f"the store belongs to the deployment {name}, not to {self.deployment.name}: "
                "correct or remove the setting deployment, or use another store"
            )
        if not isinstance(reply, list):
            raise StoreUnavailable(f"the store cannot be opened: {reply}")
        self._opened(reply)
        self.resume()
        if self.layout.number != LAYOUT:
            log.info(
                "the store is in layout %d, which releases %s read, too. If you will not go back,"
                " run holdfast upgrade --finish",
                self.layout.number,
                readers_of(self.layout.number) or "before this one",
            )
        return int(reply[1] or 0)

    async def _wait_for_lease(self) -> object:
        """Return the store's answer once no other process has a lease."""
        clock, is_waiting = boot_clock(), False
        if self._opening.claimed is not None:
            return await self._open_claimed(self._opening.claimed, clock)
        rival = RivalLease(clock)
        while True:
            unraised, asked_at = rival.unraised, clock()
            look, reply = await self._try_to_open(unraised)
            if reply is not None:
                has_looked = unraised or self._opening.gate is not None
                if has_looked:
                    await _outlast(clock() - asked_at)
                return reply
            if look.lease:
                rival.saw(look.lease)
            if (rival.is_raised or look.is_raised) and (look.host or not self._opening.is_standby):
                raise StoreUnavailable(_refusal(look))
            # A standby does not wait for hosts: they take what one of them leaves.
            if look.node and not look.host and not is_waiting:
                log.info("waiting for the lease of another server, %s, to end", look.node)
                is_waiting = True
                if self._opening.is_standby and self._opening.on_waiting is not None:
                    await self._opening.on_waiting()
            await asyncio.sleep(_LOOK_S)

    async def _open_claimed(self, claimed: Claimed, clock: Callable[[], float]) -> object:
        """Return the store's answer, once. Raises `ShardElsewhere`."""
        asked_at = clock()
        reply = await self._answer_to(unraised=claimed.unraised, offered=claimed.offered)
        if isinstance(reply, ScriptFailed) and reply.code in ("HELD", "OFFER"):
            raise ShardElsewhere(f"another host has this shard: {reply}")
        await _outlast(clock() - asked_at)
        return reply

    async def _answer_to(self, *, unraised: str, offered: str = "") -> object:
        answer: asyncio.Future[object] = self._loop.create_future()
        self._ask(partial(set_answer, answer), unraised=unraised, offered=offered)
        return await answer

    async def _try_to_open(self, unraised: str) -> tuple[Look, object]:
        """Return the store's answer, or what keeps this process from the store.

        Args:
            unraised: The epoch and the lease of a process that must be silent.
        """
        look = await self._look_at_all()
        if not look.may_open:
            return look, None
        reply = await self._answer_to(unraised=unraised)
        if not (isinstance(reply, ScriptFailed) and reply.code == "HELD"):
            return look, reply
        _, epoch, lease, host, node = str(reply).split(" ", 4)
        found = "" if host == "-" else host
        return Look(may_open=False, lease=f"{epoch} {lease}", node=node, host=found), None

    async def _look_at_all(self) -> Look:
        """Look at the other shards, if there are any. What cannot be read may be held."""
        if self._opening.gate is None:
            return Look()
        try:
            return await self._opening.gate.look()
        except StoreUnavailable as error:
            log.debug("the leases of all shards cannot be read: %s", error)
            return Look(may_open=False)

    def resume(self) -> None:
        """Allow this process to write."""
        self.state = StoreState.OPEN
        self.may_write = True

    def lose(self, why: ScriptFailed | WentBack) -> bool:
        """Record that the store refuses this process as its writer, or has lost its calls.

        Returns whether this process will open it again.
        """
        if not self.is_open:
            return self.state is not StoreState.FENCED
        self.is_open = self.may_write = False
        is_loss = self._is_loss(why)
        self.state = StoreState.LOST if is_loss else StoreState.FENCED
        self._on_lost()
        if not is_loss:
            self._be_fenced(str(why))
        return is_loss

    def _is_loss(self, why: ScriptFailed | WentBack) -> bool:
        """Return whether the store lost something. If not, another process has opened it."""
        if isinstance(why, ScriptFailed) and why.code == "EPOCH":
            found = str(why).partition(" ")[2]
            return found == "gone" or found in self._known()
        return True

    def _be_fenced(self, why: str) -> None:
        """End, because of an epoch that this process does not know.

        A later one belongs to another process. Any other may come from an old backup, or from
        another process, which opened a store that had gone back. Even if that process has ended and
        no longer raises its lease, what it accepted must not be overwritten.
        """
        self.state = StoreState.FENCED
        epoch = why.partition(" ")[2]
        is_later = seed_of(epoch) == seed_of(self.epoch) and _number_of(epoch) > self._number
        log.error(
            "another process has taken the store over: this one writes nothing any more"
            if is_later
            else "the store has an epoch that this server does not know: another server opened it, "
            "or it was restored from a backup that is too old. This server writes nothing any more "
            "and ends. If no other server has the store, start this one again: it goes on with "
            "what the store has now"
        )
        self._on_fenced()

    def open_again(self) -> None:
        """Open a store that lost something, unless another process has opened it.

        All calls must have been answered. Otherwise refusals of the old epoch would suggest that
        another process has the store.
        """
        self.state = StoreState.OPENING
        self.losses += 1
        log.error(
            "the store has lost changes, because it was emptied or restored, or a replica took over"
            " too early; the server writes what it knows again. %s",
            _ADVICE,
        )
        self._ask_again()

    def give(self) -> None:
        """Write nothing more, so that a successor can open the store."""
        self.is_open = self.may_write = False
        self.state = StoreState.GIVEN
        self._on_lost()

    async def take_back(self) -> None:
        """Have the store again after `give`. The successor, which may have opened it, has ended.

        If it has, the store is opened again as one that lost something. Its epoch proves that it
        was the successor: it has the lock of this process. Any other process that has opened the
        store has accepted what this one does not know, even if it has ended since.

        Raises `StoreUnavailable` if another process has opened it. Set a limit of time.
        """
        found = await self._link.ask("HGET", self._keys.meta, "epoch")
        if found == self.epoch.encode():
            self.is_open = True
            self.resume()
            return
        self.state = StoreState.OPENING
        while True:
            answer: asyncio.Future[object] = self._loop.create_future()
            self._ask(partial(set_answer, answer), instead_of=self._known(), takes_back=True)
            if self._has_opened_again(await answer):
                break
            await asyncio.sleep(_PAUSE_S)
        if self.state is StoreState.FENCED:
            raise StoreUnavailable("another server has opened the store meanwhile")

    def _known(self) -> Collection[str]:
        """Return the epochs that this process may replace: it knows what was accepted in them.

        Where its lease was never confirmed, the holder of an earlier epoch may still live, and
        accept more.
        """
        return (*self._former, self.epoch) if self.was_confirmed else self._own

    def _ask_again(self) -> None:
        self._ask(self._opened_again, instead_of=self._known())

    def _ask(
        self,
        done: Answer,
        *,
        instead_of: Collection[str] = (),
        unraised: str = "",
        takes_back: bool = False,
        offered: str = "",
    ) -> None:
        call = open_store(
            self._keys,
            seed=self._opening.seed(),
            node=self._opening.node,
            nonce=secrets.token_hex(4),
            instead_of=instead_of,
            deployment=self.deployment,
            lock=self._opening.lock,
            unraised=unraised,
            above=self._number,
            division=self._opening.division,
            stamp=None if self._stamp is None else self._stamp(),
            takes_back=takes_back,
            host=self._opening.host,
            offered=offered,
        )
        self._link.script(call.script, call.keys, call.args, done)
        self._link.flush()

    def _opened(self, reply: list[bytes]) -> None:
        former = [*reply[4].decode().split(), self.epoch]
        self._former += filter(None, former)
        self.epoch = reply[0].decode()
        self._clock.go_on(int(reply[2]))
        found = int(reply[3] or LAYOUT)
        # A store that went back may lack the end of the upgrade, which it is told again.
        self.layout.enter(max(found, self.layout.number) if self._own else found)
        self.deployment = Deployment(reply[5].decode(), bytes.fromhex(reply[6].decode()))
        self._own.append(self.epoch)
        self._number = _number_of(self.epoch)
        self.is_open = True
        self._on_opened(self.epoch)

    def _opened_again(self, reply: object) -> None:
        if not self._has_opened_again(reply):
            self._loop.call_later(_PAUSE_S, self._ask_again)

    def _has_opened_again(self, reply: object) -> bool:
        """Do what follows from an answer. Returns whether that was the last one."""
        if isinstance(reply, ScriptFailed) and reply.code == "EPOCH":
            self._be_fenced(str(reply))
        elif isinstance(reply, list):
            self._opened(reply)
            self.state = StoreState.TOLD
            self._on_again()
        else:
            log.error("the store cannot be opened: %s", reply)
            return False
        return True


async def _outlast(asked_s: float) -> None:
    """Wait if the store took so long to let this process open it.

    The call may have been repeated to a new primary that lacks the last raises: until their holder
    must be silent, this process does not speak.
    """
    if asked_s > BLIND_S:
        await asyncio.sleep(SPEAK_S)


def _refusal(look: Look) -> str:
    """Return why a server may not have a store that another one has."""
    if look.host:
        return (
            f"the store belongs to a deployment of several hosts, one of which is {look.host}: stop"
            " all of them before you start a server without the setting hosts"
        )
    return (
        f"another server, {look.node}, has the store: stop it, or start this one with --standby, "
        "and it takes over when the other one ends"
    )


def seed_of(epoch: str) -> str:
    """Return the random text with which the store of this epoch began."""
    return epoch.rpartition("-")[0]


def _number_of(epoch: str) -> int:
    number = epoch.rpartition("-")[2].partition(".")[0]
    return int(number) if number.isdecimal() else 0


def _other_version(found: str) -> str:
    return (
        f"the store was written by another version of holdfast ({found}; this one reads "
        f"versions {OLDEST_LAYOUT} to {LAYOUT}): start that one, or use an empty store"
    )
