"""A server of the fake store: carries out commands, and has the troubles of a real one."""

from collections.abc import Callable, Sequence
from enum import Enum
from math import inf
from typing import TYPE_CHECKING

from tests.simulation.store import (  # noqa: F401 - they enter their commands into the table
    on_hashes,
    on_keys,
    on_sorted_sets,
    on_streams,
)
from tests.simulation.store.command import Command, UnknownCommand, Words, command_named, known
from tests.simulation.store.connection import Blocked, Connection
from tests.simulation.store.history import History
from tests.simulation.store.keyspace import Keyspace
from tests.simulation.store.on_streams import block_ms
from tests.simulation.store.replication import UNBLOCKED, Replication
from tests.simulation.store.replies import NO_LIST, Refused, Reply, Status
from tests.simulation.store.scripting import Compiled, scripting
from tests.simulation.store.server_commands import SERVER_COMMANDS, ServerCommand
from tests.simulation.store.settings import Settings
from tests.simulation.store.stream_waits import StreamWaits

if TYPE_CHECKING:
    from tests.simulation.store.cluster_view import ClusterView

Later = Callable[[float, Callable[[], None]], object]

OUT_OF_MEMORY = "OOM command not allowed when used memory > 'maxmemory'."
READ_ONLY = "READONLY You can't write against a read only replica."
TOO_FEW_REPLICAS = "NOREPLICAS Not enough good replicas to write."
CANNOT_WRITE = "MISCONF Errors writing to the AOF file: No space left on device"
LOADING = "LOADING Valkey is loading the dataset in memory"
# How long changes usually take to a replica.
LAG_S = 0.001
# No position of any history.
_NOWHERE = -1
_QUEUED = Status(b"QUEUED")


class Role(Enum):
    """What a server takes itself for."""

    PRIMARY = "master"
    REPLICA = "slave"


class Node:
    """A server process; `clock` is its wall clock."""

    def __init__(
        self, clock: Callable[[], float], later: Later, *, host: str = "127.0.0.1", port: int = 6379
    ) -> None:
        self.clock = clock
        self.later = later
        self.host = host
        self.port = port
        self.settings = Settings()
        self.role = Role.PRIMARY
        # The one whose replica this is, as far as this one knows; how much it has of it, and how
        # much of this it has told it.
        self.leader: Node | None = None
        self.position = self.confirmed = 0
        # How much of it is in this one's file, and how much of that its leader knows.
        self.filed = self.confirmed_filed = 0
        # When it began to follow its leader.
        self.followed_at = inf
        # How long its leader's changes take to come here, and whether they do not come.
        self.lag_s = LAG_S
        self.is_cut_off = False
        self._keyspace = Keyspace(clock)
        # How much of its leader's history a replica has carried out.
        self._is_at = 0
        self.history = History(self._keyspace.copy())
        self.scripts: dict[bytes, Compiled] = {}
        self.connections: list[Connection] = []
        self.replication = Replication(self)
        self._stream_waits = StreamWaits(self)
        self.is_frozen = False
        # Since when it is frozen.
        self.frozen_at = inf
        self.is_loading = False
        self.is_running = True
        self.is_disk_full = False
        # How many more commands there are before it crashes.
        self.crashes_in: int | None = None
        self._last_id = 0
        # The script in progress, its effects, and whether it may not take memory.
        self._script: Compiled | None = None
        self._effects: list[Words] = []
        self._is_short = False
        # Called when it can be reached again.
        self.on_back: Callable[[], None] = lambda: None
        # Called when it has ended, and the number of its process.
        self.on_crashed: Callable[[], None] = lambda: None
        self.pid = 1
        # What it knows of its cluster, if it is in one.
        self.view: ClusterView | None = None
        # How many scripts were run.
        self.scripts_run = 0
        # Called with each command, the machine that it came from, and the reply.
        self.on_command: Callable[[str, Words, Reply], None] = lambda *_: None

    def connect(
        self, send: Callable[[bytes], None], closed: Callable[[], None] = lambda: None
    ) -> Connection:
        """Accept a connection. Raises `ConnectionRefusedError` if the server does not run."""
        if not self.is_running:
            raise ConnectionRefusedError
        self._last_id += 1
        connection = Connection(self, send, closed)
        connection.id = self._last_id
        self.connections.append(connection)
        return connection

    @property
    def is_primary(self) -> bool:
        return self.role is Role.PRIMARY

    @property
    def keyspace(self) -> Keyspace:
        """What it has. A replica carries changes out when somebody looks."""
        if self.leader is not None and self._is_at != self.position:
            self._keyspace = self.leader.history.at(self.position)
            self._is_at = self.position
        return self._keyspace

    # Commands

    def carry_out(self, connection: Connection, words: Words) -> Reply:
        """Carry out a command of a client."""
        try:
            reply = self._do(connection, words)
        except Refused as refused:
            connection.is_spoiled = True
            reply = refused.failure
        if not isinstance(reply, Blocked):
            self.on_command(connection.client, words, reply)
        if self.crashes_in is not None:
            self.crashes_in -= 1
            if self.crashes_in <= 0:
                self.crash()
        return reply

    def _do(self, connection: Connection, words: Words) -> Reply:
        command = command_named(words[0])
        if command is None:
            server_command = SERVER_COMMANDS.get(words[0].upper())
            if server_command is None:
                raise UnknownCommand(words)
            return self._do_for_server(connection, server_command, words)
        command.check(words)
        if self.view is not None:
            self.check_place(connection, command.keys(words))
        self._check(command)
        if connection.queued is not None:
            connection.queued.append(words)
            return _QUEUED
        return self.run(connection, command, words)

    def check_place(self, connection: Connection, keys: Words) -> None:
        """Refuse keys that are elsewhere, if it is in a cluster."""
        is_asking, connection.is_asking = connection.is_asking, False
        if self.view is not None and keys:
            self.view.check(keys, is_asking=is_asking)

    def _do_for_server(self, connection: Connection, command: ServerCommand, words: Words) -> Reply:
        if self.is_loading and not command.is_for_loading:
            raise Refused(LOADING)
        if connection.queued is not None and not command.is_of_transactions:
            connection.queued.append(words)
            return _QUEUED
        return command.run(connection, words)

    def run(self, connection: Connection, command: Command, words: Words) -> Reply:
        """Run a command on keys, without a script."""
        at = self.keyspace
        before = self._begin(at)
        try:
            reply = command.run(at, words)
        finally:
            if at.dirty != before:
                self._wrote(connection, at.effects or [words])
        if reply is NO_LIST and (timeout_ms := block_ms(words)) is not None:
            return self._stream_waits.wait(
                connection, lambda: command.run(self.keyspace, words), timeout_ms
            )
        return reply

    def run_script(
        self, connection: Connection, script: Compiled, keys: Words, args: Words
    ) -> Reply:
        """Run a script as a whole."""
        self.scripts_run += 1
        if self.is_loading:
            raise Refused(LOADING)
        if script.is_flagged and "no-writes" not in script.flags:
            self._check_writes()
            if self.settings.is_full and "allow-oom" not in script.flags:
                raise Refused(OUT_OF_MEMORY)
        self._script, self._effects, self._is_short = script, [], self.settings.is_full
        reply = scripting().run(script, keys, args, self)
        self._script = None
        if self._effects:
            self._wrote(connection, self._effects)
        return reply

    def run_in_script(self, words: Words) -> Reply:
        """Run a command of the script in progress. Raises `Refused`."""
        command = command_named(words[0])
        if command is None:
            raise UnknownCommand(words)
        if not command.fits(len(words)):
            raise Refused("ERR Wrong number of args calling command from script")
        if command.writes:
            self._check_in_script(command)
        at = self.keyspace
        before = self._begin(at)
        reply = command.run(at, words)
        if at.dirty != before:
            self._effects += at.effects or [words]
        return reply

    @staticmethod
    def _begin(at: Keyspace) -> int:
        at.effects = None
        return at.dirty

    def _check_in_script(self, command: Command) -> None:
        script = self._script
        assert script is not None
        if "no-writes" in script.flags:
            raise Refused("ERR Write commands are not allowed from read-only scripts.")
        self._check_writes()
        # A script that has called a command that writes goes on.
        is_stopped = self._is_short and "allow-oom" not in script.flags
        if is_stopped and command.grows:
            raise Refused(OUT_OF_MEMORY)
        self._is_short = False

    def _check(self, command: Command) -> None:
        if self.is_loading:
            raise Refused(LOADING)
        if command.writes:
            if command.grows and self.settings.is_full:
                raise Refused(OUT_OF_MEMORY)
            self._check_writes()

    def _check_writes(self) -> None:
        if self.is_disk_full and self.is_primary:
            raise Refused(CANNOT_WRITE)
        if self.role is Role.REPLICA:
            raise Refused(READ_ONLY)
        if self.settings.min_replicas and not self.replication.has_good_replicas():
            raise Refused(TOO_FEW_REPLICAS)

    def _wrote(self, connection: Connection, effects: Sequence[Words]) -> None:
        self.history.add(effects, self.clock())
        connection.wrote_to = self.history.end
        self.replication.wrote()
        self._stream_waits.look()

    # What its operators and accidents do to it

    def crash(self) -> None:
        """End at once. Answers that have not left are lost."""
        self.is_running = self.is_frozen = self.is_loading = False
        self.frozen_at = inf
        self.crashes_in = None
        self.replication.forget_clients()
        self._stream_waits.forget_clients()
        for connection in [*self.connections]:
            connection.cut()
        self.on_crashed()

    def start(self, position: int | None = None, *, loading_s: float = 0.0) -> None:
        """Start again, with what its file has: by default, all that was synchronised.

        Args:
            position: How much of its history the file has; at least what was synchronised.
            loading_s: How long it loads.
        """
        assert not self.is_running
        self.is_running = True
        self.scripts.clear()
        if self.is_primary and position is None and not self.settings.has_file:
            self._wipe()
        elif self.is_primary:
            self.go_back(self.replication.synced if position is None else position)
        if loading_s:
            self.is_loading = True
            self.later(loading_s, self._loaded)
        self.on_back()

    def _wipe(self) -> None:
        """Begin without data. Replicas lose theirs, too."""
        self._keyspace = Keyspace(self.clock)
        self.history = History(Keyspace(self.clock), self.history.end)
        self.replication.go_back(self.history.end)

    def _loaded(self) -> None:
        self.is_loading = False

    def go_back(self, position: int) -> None:
        """Lose everything behind the position. Its replicas lose it, too."""
        self._keyspace = self.history.at(position)
        self.history.cut(position)
        self.replication.go_back(position)

    def empty(self) -> None:
        """Lose all data, as by an operator's command."""
        self.do(b"FLUSHALL")

    def do(self, *words: bytes) -> Reply:
        """Carry out a command on keys, without a client."""
        reply = known(words[0]).run(self.keyspace, words)
        self.history.add([words], self.clock())
        self.replication.wrote()
        return reply

    def freeze(self) -> None:
        """Accept connections and bytes from now on, but do nothing."""
        self.is_frozen = True
        self.frozen_at = min(self.frozen_at, self.clock())

    def thaw(self) -> None:
        """Go on, and first carry out what has come meanwhile."""
        self.is_frozen = False
        self.frozen_at = inf
        self.replication.go_on()
        self._stream_waits.go_on()
        for connection in [*self.connections]:
            connection.thaw()
        self.on_back()

    def cut_off(self) -> None:
        """Reach no other server from now on. Clients still reach this one."""
        self.is_cut_off = True

    def rejoin(self) -> None:
        """Reach the other servers again."""
        self.is_cut_off = False
        self.on_back()

    # Replicas

    @property
    def is_reachable(self) -> bool:
        """Whether other servers reach it."""
        return self.is_running and not self.is_frozen and not self.is_cut_off

    def lead(self, position: int) -> None:
        """Become a primary with this much of the history of the former one."""
        former = self.leader
        assert former is not None, "a primary cannot be promoted"
        assert position >= self.confirmed, "a replica has what it has confirmed"
        self.position = position
        self._is_at = _NOWHERE
        self._keyspace = self.keyspace
        self.leader, self.role = None, Role.PRIMARY
        self.followed_at = inf
        self.history = History(self._keyspace.copy(), position)
        self.replication.synced = position
        if former.is_reachable:
            former.replication.lose(self)

    def follow(self, leader: "Node", *, ends_connections: bool = True) -> None:
        """Become a replica, and forget whatever the leader does not have."""
        if self.leader is not None:
            self.leader.replication.lose(self)
        self.replication.followers.clear()
        self.leader, self.role = leader, Role.REPLICA
        self.followed_at = self.clock()
        self.position = self.confirmed = leader.history.end
        self.filed = self.confirmed_filed = self.position if self.settings.has_file else 0
        self._is_at = _NOWHERE
        leader.replication.followers.append(self)
        self.replication.unblock_clients()
        self._stream_waits.unblock_clients(UNBLOCKED)
        if ends_connections:
            for connection in [*self.connections]:
                connection.cut()

    def forget_values(self, position: int) -> None:
        """Have no more than this, because the leader has no more."""
        self.position = min(self.position, position)
        self.confirmed = min(self.confirmed, position)
        self.filed = min(self.filed, position)
        self.confirmed_filed = min(self.confirmed_filed, position)
        self._is_at = _NOWHERE
