"""What a primary has told its replicas and its file, and the clients that wait for that."""

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from tests.simulation.store.connection import BLOCKED, Connection
from tests.simulation.store.replies import Failure, Reply

if TYPE_CHECKING:
    from tests.simulation.store.node import Node

# How often files are synchronised, unless at each write.
_SYNC_S = 1.0
# How long a silent replica counts as a good one.
_LONGEST_LAG_S = 10.0


UNBLOCKED = Failure(
    b"UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)"
)


@dataclass(slots=True, eq=False)
class _Wait:
    connection: Connection
    position: int
    local: int
    replicas: int
    # Whether the file counts, too: the reply has both counts.
    is_for_files: bool


class Replication:
    """The replicas of a server, its file, and its clients in WAIT."""

    def __init__(self, node: "Node") -> None:
        self._node = node
        self.followers: list[Node] = []
        # What is under way to replicas.
        self._sent: set[int] = set()
        # How much of the history is in the file for certain.
        self.synced = 0
        self._is_sync_due = False
        self._waits: list[_Wait] = []
        # Those whose time was over while the server was frozen.
        self._overdue: list[_Wait] = []
        # Since when replicas are known to be silent.
        self._silent_since: dict[int, float] = {}

    def lose(self, follower: "Node") -> None:
        """Forget a replica that has left, unless that is known already."""
        if follower in self.followers:
            self.followers.remove(follower)

    @property
    def connected(self) -> list["Node"]:
        """The replicas as this server sees them: also those that it does not hear any more."""
        return [each for each in self.followers if each.is_running]

    def has_good_replicas(self) -> bool:
        """Return whether enough replicas were heard lately."""
        now = self._node.clock()
        for each in self.followers:
            if self._reaches(each):
                self._silent_since.pop(id(each), None)
            else:
                self._silent_since.setdefault(id(each), now)
        good = [
            each
            for each in self.connected
            if now - self._silent_since.get(id(each), now) <= _LONGEST_LAG_S
        ]
        return len(good) >= self._node.settings.min_replicas

    def wrote(self) -> None:
        """Pass on what was written."""
        if self._node.settings.syncs_always:
            self.synced = self._node.history.end
        elif self._node.settings.has_file and not self._is_sync_due:
            self._is_sync_due = True
            self._node.later(_SYNC_S, partial(self._sync, self._node.history))
        for follower in self.followers:
            self.ship(follower)
        self._node.history.forget(
            min([self.synced, *(each.confirmed for each in self._true_followers())])
            if self._node.settings.has_file or self.followers
            else self._node.history.end
        )

    def _true_followers(self) -> list["Node"]:
        """Return those that still follow, whatever is known here."""
        return [each for each in self.followers if each.leader is self._node]

    def go_back(self, position: int) -> None:
        """Lose everything behind the position, which replicas then lose."""
        self.synced = min(self.synced, position)
        for follower in self._true_followers():
            follower.forget_values(position)

    def go_on(self) -> None:
        """Do what was due while the server was frozen or cut off."""
        for follower in self.followers:
            self.ship(follower)
        overdue, self._overdue = self._overdue, []
        for wait in overdue:
            self._end(wait)

    def _sync(self, history: object) -> None:
        self._is_sync_due = False
        if self._node.is_running and self._node.history is history:
            self.synced = self._node.history.end
            self._look()

    def ship(self, follower: "Node") -> None:
        """Send a replica what it lacks, unless that is under way."""
        end = self._node.history.end
        if id(follower) in self._sent or follower.position >= end:
            return
        if self._reaches(follower):
            self._sent.add(id(follower))
            self._node.later(follower.lag_s, partial(self._arrive, follower, end))

    def _reaches(self, follower: "Node") -> bool:
        is_there = follower.leader is self._node and follower.is_reachable
        return is_there and self._node.is_reachable

    def _arrive(self, follower: "Node", end: int) -> None:
        self._sent.discard(id(follower))
        if self._reaches(follower):
            follower.position = max(follower.position, min(end, self._node.history.end))
            if follower.settings.syncs_always:
                follower.filed = follower.position
            elif follower.settings.has_file:
                self._node.later(_SYNC_S, partial(self._file, follower, follower.position))
            self._report(follower)
            self.ship(follower)

    def _file(self, follower: "Node", position: int) -> None:
        """A replica has synchronised its file."""
        if follower.is_running and follower.leader is self._node:
            follower.filed = max(follower.filed, min(position, follower.position))
            self._report(follower)

    def _report(self, follower: "Node") -> None:
        tell = partial(self._confirm, follower, follower.position, follower.filed)
        self._node.later(follower.lag_s, tell)

    def _confirm(self, follower: "Node", position: int, filed: int) -> None:
        if self._reaches(follower):
            end = self._node.history.end
            follower.confirmed = max(follower.confirmed, min(position, end))
            follower.confirmed_filed = max(follower.confirmed_filed, min(filed, end))
            self._look()

    # Clients that wait

    def wait(
        self,
        connection: Connection,
        replicas: int,
        timeout_ms: int,
        *,
        local: int = 0,
        is_for_files: bool = False,
    ) -> Reply:
        """Return the reply, or let the client wait for it."""
        wait = _Wait(connection, connection.wrote_to, local, replicas, is_for_files)
        if self._is_enough(wait):
            return self._reply(wait)
        self._waits.append(wait)
        if timeout_ms:
            self._node.later(timeout_ms / 1000, partial(self._end, wait))
        return BLOCKED

    def _counts(self, wait: _Wait) -> tuple[int, int]:
        there = sum(
            (each.confirmed_filed if wait.is_for_files else each.confirmed) >= wait.position
            for each in self.followers
        )
        return int(self._node.settings.has_file and self.synced >= wait.position), there

    def _is_enough(self, wait: _Wait) -> bool:
        local, replicas = self._counts(wait)
        return local >= wait.local and replicas >= wait.replicas

    def _reply(self, wait: _Wait) -> Reply:
        local, replicas = self._counts(wait)
        return [local, replicas] if wait.is_for_files else replicas

    def _look(self) -> None:
        for wait in [*self._waits]:
            if self._is_enough(wait):
                self._end(wait)

    def forget_clients(self) -> None:
        self._waits.clear()

    def unblock_clients(self) -> None:
        """Tell those that wait that this is no primary any more."""
        waits, self._waits = self._waits, []
        for wait in waits:
            wait.connection.answer(UNBLOCKED)

    def _end(self, wait: _Wait) -> None:
        if self._node.is_frozen:
            self._overdue.append(wait)
        elif wait in self._waits:
            self._waits.remove(wait)
            wait.connection.answer(self._reply(wait))
