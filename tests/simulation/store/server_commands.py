"""Commands that concern the connection or the server."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.simulation.store.command import UnknownCommand, Words, command_named, whole
from tests.simulation.store.replies import OK, Refused, Reply, Status, Verbatim
from tests.simulation.store.scripting import Compiled, scripting

if TYPE_CHECKING:
    from tests.simulation.store.cluster_view import ClusterView
    from tests.simulation.store.connection import Connection
    from tests.simulation.store.node import Node

VERSION = b"9.1.2"
Run = Callable[["Connection", Words], Reply]


@dataclass(frozen=True, slots=True)
class ServerCommand:
    """A command that is not about keys."""

    run: Run
    is_for_loading: bool
    is_of_transactions: bool


SERVER_COMMANDS: dict[bytes, ServerCommand] = {}


def _server_command(
    name: str, *, is_for_loading: bool = False, is_of_transactions: bool = False
) -> Callable[[Run], Run]:
    def enter(run: Run) -> Run:
        SERVER_COMMANDS[name.encode()] = ServerCommand(run, is_for_loading, is_of_transactions)
        return run

    return enter


# The connection


@_server_command("HELLO", is_for_loading=True)
def _hello(at: "Connection", words: Words) -> Reply:
    return greeting(at, words)


def greeting(at: "Connection", words: Words) -> dict[Reply, Reply]:
    """Say what the server is."""
    protocol, rest = at.protocol, [*words[1:]]
    if rest:
        if rest[0] not in (b"2", b"3"):
            raise Refused("NOPROTO unsupported protocol version")
        protocol = int(rest.pop(0))
    while rest:
        option = rest.pop(0).upper()
        if option == b"SETNAME" and rest:
            at.name = rest.pop(0)
        elif option == b"AUTH" and len(rest) >= 2:
            _check_password(rest.pop(0), rest.pop(0))
        else:
            raise Refused(f"ERR Syntax error in HELLO option '{option.decode().lower()}'")
    at.protocol = protocol
    return {
        b"server": b"valkey",
        b"version": VERSION,
        b"proto": protocol,
        b"id": at.id,
        b"mode": b"standalone" if at.node.view is None else b"cluster",
        b"role": b"master" if at.node.is_primary else b"replica",
        b"modules": [],
    }


def _check_password(user: bytes, _: bytes) -> None:
    if user != b"default":
        raise Refused("WRONGPASS invalid username-password pair or user is disabled.")


@_server_command("AUTH", is_for_loading=True)
def _auth(_: "Connection", words: Words) -> Reply:
    if len(words) == 2:
        raise Refused(
            "ERR AUTH <password> called without any password configured for the default user. "
            "Are you sure your configuration is correct?"
        )
    _check_password(words[1], words[2])
    return OK


@_server_command("SELECT", is_for_loading=True)
def _select(_: "Connection", words: Words) -> Reply:
    if whole(words[1]):
        raise UnknownCommand(words)
    return OK


@_server_command("PING")
def _ping(_: "Connection", words: Words) -> Reply:
    return words[1] if len(words) > 1 else Status(b"PONG")


@_server_command("CLIENT", is_for_loading=True)
def _client(at: "Connection", words: Words) -> Reply:
    match words[1].upper():
        case b"SETINFO":
            return OK
        case b"SETNAME":
            at.name = words[2]
            return OK
        case b"GETNAME":
            return at.name or None
        case b"ID":
            return at.id
        case b"KILL" if [*map(bytes.upper, words[2:])] == [b"TYPE", b"NORMAL", b"SKIPME", b"YES"]:
            others = [each for each in at.node.connections if each is not at]
            for each in others:
                each.cut()
            return len(others)
        case _:
            raise UnknownCommand(words)


@_server_command("ECHO")
def _echo(_: "Connection", words: Words) -> Reply:
    return words[1]


# Transactions


@_server_command("MULTI", is_of_transactions=True)
def _multi(at: "Connection", _: Words) -> Reply:
    if at.queued is not None:
        raise Refused("ERR MULTI calls can not be nested")
    at.queued, at.is_spoiled = [], False
    return OK


@_server_command("DISCARD", is_of_transactions=True)
def _discard(at: "Connection", _: Words) -> Reply:
    if at.queued is None:
        raise Refused("ERR DISCARD without MULTI")
    at.queued = None
    return OK


@_server_command("EXEC", is_of_transactions=True)
def _exec(at: "Connection", _: Words) -> Reply:
    queued, at.queued = at.queued, None
    if queued is None:
        raise Refused("ERR EXEC without MULTI")
    if at.is_spoiled:
        raise Refused("EXECABORT Transaction discarded because of previous errors.")
    return [_one_of_many(at, words) for words in queued]


def _one_of_many(at: "Connection", words: Words) -> Reply:
    command = command_named(words[0])
    try:
        if command is None:
            return SERVER_COMMANDS[words[0].upper()].run(at, words)
        return at.node.run(at, command, words)
    except Refused as refused:
        return refused.failure


# Scripts


@_server_command("SCRIPT", is_for_loading=False)
def _script(at: "Connection", words: Words) -> Reply:
    match words[1].upper():
        case b"LOAD" if len(words) == 3:
            return _known(at, words[2]).sha
        case b"EXISTS":
            return [int(sha.lower() in at.node.scripts) for sha in words[2:]]
        case b"FLUSH":
            at.node.scripts.clear()
            return OK
        case _:
            raise UnknownCommand(words)


def _known(at: "Connection", source: bytes) -> Compiled:
    script = scripting().compiled(source)
    at.node.scripts[script.sha] = script
    return script


@_server_command("EVALSHA")
def _evalsha(at: "Connection", words: Words) -> Reply:
    if at.node.view is not None:
        at.node.check_place(at, words[3 : 3 + _count_of_keys(words)])
    script = at.node.scripts.get(words[1]) or at.node.scripts.get(words[1].lower())
    if script is None:
        raise Refused("NOSCRIPT No matching script.")
    return _run(at, script, words)


@_server_command("EVAL")
def _eval(at: "Connection", words: Words) -> Reply:
    if at.node.view is not None:
        at.node.check_place(at, words[3 : 3 + _count_of_keys(words)])
    return _run(at, _known(at, words[1]), words)


def _run(at: "Connection", script: Compiled, words: Words) -> Reply:
    count = _count_of_keys(words)
    return at.node.run_script(at, script, words[3 : 3 + count], words[3 + count :])


def _count_of_keys(words: Words) -> int:
    count = whole(words[2])
    if count > len(words) - 3:
        raise Refused("ERR Number of keys can't be greater than number of args")
    if count < 0:
        raise Refused("ERR Number of keys can't be negative")
    return count


# The server


@_server_command("INFO", is_for_loading=True)
def _info(at: "Connection", words: Words) -> Reply:
    node = at.node
    memory = node.settings.get("maxmemory", "maxmemory-policy")
    lines = {
        "process_id": node.pid,
        "loading": int(node.is_loading),
        "used_memory": 1024**2,
        "maxmemory": memory["maxmemory"],
        "maxmemory_policy": memory["maxmemory-policy"],
        "role": "master" if node.is_primary else "slave",
        "connected_slaves": len(node.replication.connected),
        "master_repl_offset": node.history.end,
        "aof_rewrite_in_progress": 0,
        "aof_rewrite_scheduled": 0,
        "cmdstat_evalsha": f"calls={node.scripts_run}",
    }
    return Verbatim("".join(f"{name}:{value}\r\n" for name, value in lines.items()).encode())


@_server_command("CONFIG", is_for_loading=True)
def _config(at: "Connection", words: Words) -> Reply:
    texts = [word.decode() for word in words[2:]]
    match words[1].upper():
        case b"GET":
            found = at.node.settings.get(*texts)
            return {name.encode(): value.encode() for name, value in found.items()}
        case b"SET":
            for name, value in zip(texts[::2], texts[1::2], strict=True):
                if not at.node.settings.set(name, value):
                    raise UnknownCommand(words)
            return OK
        case _:
            raise UnknownCommand(words)


@_server_command("SHUTDOWN", is_for_loading=True)
def _shutdown(at: "Connection", _: Words) -> Reply:
    at.node.crash()
    return OK


@_server_command("ROLE", is_for_loading=True)
def _role(at: "Connection", _: Words) -> Reply:
    node = at.node
    if node.leader is not None:
        leader = node.leader
        return [b"slave", leader.host.encode(), leader.port, b"connected", node.position]
    replicas = [
        [each.host.encode(), b"%d" % each.port, b"%d" % each.confirmed]
        for each in node.replication.connected
    ]
    return [b"master", node.history.end, replicas]


@_server_command("WAIT")
def _wait(at: "Connection", words: Words) -> Reply:
    _must_lead(at, "WAIT")
    return at.node.replication.wait(at, whole(words[1]), whole(words[2]))


@_server_command("WAITAOF")
def _waitaof(at: "Connection", words: Words) -> Reply:
    _must_lead(at, "WAITAOF")
    local, replicas, timeout_ms = map(whole, words[1:4])
    if local and not at.node.settings.has_file:
        raise Refused("ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.")
    return at.node.replication.wait(at, replicas, timeout_ms, local=local, is_for_files=True)


@_server_command("PUBLISH", is_for_loading=True)
def _publish(at: "Connection", _: Words) -> Reply:
    """Tell nobody; but replicas get it, and so WAIT waits for them, unless it is a cluster."""
    if at.node.is_primary and at.node.view is None:
        at.node.history.add((), at.node.clock())
        at.wrote_to = at.node.history.end
        at.node.replication.wrote()
    return 0


def _must_lead(at: "Connection", name: str) -> None:
    if not at.node.is_primary:
        raise Refused(
            f"ERR {name} cannot be used with replica instances. Please also note that if a replica"
            " is configured to be writable (which is not the default) writes to replicas are just"
            " local and are not propagated."
        )


# The cluster


@_server_command("ASKING", is_for_loading=True)
def _asking(at: "Connection", _: Words) -> Reply:
    _must_be_in_cluster(at)
    at.is_asking = True
    return OK


@_server_command("CLUSTER", is_for_loading=True)
def _cluster(at: "Connection", words: Words) -> Reply:
    view = _must_be_in_cluster(at)
    if words[1].upper() != b"SLOTS":
        raise UnknownCommand(words)
    return [
        [first, last, *map(_place_of, [owner, *owner.replication.connected])]
        for first, last, owner in view.ranges
    ]


def _place_of(node: "Node") -> Reply:
    return [node.host.encode(), node.port, f"{node.host}:{node.port}".encode(), {}]


def _must_be_in_cluster(at: "Connection") -> "ClusterView":
    if at.node.view is None:
        raise Refused("ERR This instance has cluster support disabled")
    return at.node.view
