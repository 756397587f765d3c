"""Runs Lua scripts over a keyspace, with the language that Valkey has in it."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha1
from pathlib import Path
from typing import Any, Protocol

from lupa.lua51 import LuaRuntime

from tests.simulation.store.command import Words
from tests.simulation.store.replies import (
    ByKey,
    Failure,
    NoList,
    Pairs,
    Refused,
    Reply,
    Status,
    number_text,
    pairs_of,
)

_FLAGS = {"allow-oom", "no-writes", "allow-stale", "no-cluster", "allow-cross-slot-keys"}
_NO_INTEGER = -(2**63)


@dataclass(frozen=True, slots=True)
class Compiled:
    """A script; one without a first line that names the language has no flags."""

    sha: bytes
    chunk: Any
    is_flagged: bool
    flags: frozenset[str]


class Commands(Protocol):
    """Runs the commands of a script."""

    def run_in_script(self, words: Words) -> Reply:
        """Return the reply. Raises `Refused`."""


class Scripting:
    """The language, and the scripts compiled so far. One of them runs at a time."""

    def __init__(self) -> None:
        self._lua = LuaRuntime(
            encoding=None, register_eval=False, register_builtins=False, unpack_returned_tuples=True
        )
        self._commands: Commands | None = None
        # What went wrong here, and not in the script.
        self._broken: Exception | None = None
        source = Path(__file__).with_name("sandbox.lua").read_bytes()
        load = self._lua.eval(b"function(source) return loadstring(source, '=sandbox') end")
        sandbox = load(source)
        self._compile, self._run = sandbox(
            self._run_command, _text_of, _digest, _reply_list, _error, _status
        )
        self._compiled: dict[bytes, Compiled] = {}

    def compiled(self, source: bytes) -> Compiled:
        """Compile a script. Raises `Refused`."""
        found = self._compiled.get(source)
        if found is None:
            found = self._compiled[source] = self._made(source)
        return found

    def _made(self, source: bytes) -> Compiled:
        sha = sha1(source, usedforsecurity=False).hexdigest().encode()
        first, newline, rest = source.partition(b"\n")
        is_flagged = first.startswith(b"#!")
        flags = _flags(first.decode()) if is_flagged else frozenset()
        chunk = self._compile(newline + rest if is_flagged else source)
        if isinstance(chunk, tuple):
            raise Refused(f"ERR Error compiling script (new function): {chunk[1].decode()}")
        return Compiled(sha, chunk, is_flagged, flags)

    def run(self, script: Compiled, keys: Words, args: Words, commands: Commands) -> Reply:
        """Run a script and return its reply."""
        self._commands = commands
        table = self._lua.table_from
        reply = _reply(self._run(script.chunk, table(keys), table(args)))
        broken, self._broken = self._broken, None
        if broken is not None:
            raise broken
        return reply

    def _run_command(self, *words: Any) -> object:
        """Run a command of the script. An exception becomes an error of the script."""
        try:
            command = [word if type(word) is bytes else _word(word) for word in words]
            if not command:
                raise Refused("ERR Please specify at least one argument for this call")
            assert self._commands is not None
            reply = self._commands.run_in_script(command)
        except Refused:
            raise
        except Exception as error:
            self._broken = error
            raise
        if type(reply) is bytes or type(reply) is int:
            return reply
        return self._to_lua(reply)

    def _to_lua(self, reply: Reply) -> object:
        match reply:
            case None | NoList():
                return False
            case ByKey():
                return self._list(pairs_of(reply))
            case Status():
                return self._lua.table_from({b"ok": bytes(reply)})
            case bytes() | int():
                return reply
            case float():
                return number_text(reply)
            case dict():
                return self._list([each for pair in reply.items() for each in pair])
            case Pairs() | list():
                return self._list(reply)
            case _:
                raise TypeError(f"scripts cannot have this reply: {reply!r}")

    def _list(self, replies: Sequence[Reply]) -> object:
        return self._lua.table_from([self._to_lua(each) for each in replies])


def _flags(line: str) -> frozenset[str]:
    engine, *options = line.removeprefix("#!").split()
    if engine != "lua":
        raise Refused(f"ERR Could not find scripting engine '{engine}'")
    flags: set[str] = set()
    for option in options:
        name, _, words = option.partition("=")
        if name != "flags":
            raise Refused(f"ERR Unknown lua shebang option: {option}")
        flags |= {*filter(None, words.split(","))}
    for flag in sorted(flags - _FLAGS):
        raise Refused(f"ERR Unexpected flag in script shebang: {flag}")
    return frozenset(flags)


class _Made:
    """A reply that Lua must not take for a text."""

    __slots__ = ("reply",)

    def __init__(self, reply: Reply) -> None:
        self.reply = reply


def _error(text: bytes) -> _Made:
    return _Made(Failure(text))


def _status(text: bytes) -> _Made:
    return _Made(Status(text))


def _text_of(error: Exception) -> bytes:
    return bytes(error.failure) if isinstance(error, Refused) else str(error).encode()


def _digest(text: bytes) -> bytes:
    return sha1(text, usedforsecurity=False).hexdigest().encode()


def _word(word: object) -> bytes:
    """Turn an argument of a command into text."""
    if isinstance(word, int | float) and not isinstance(word, bool):
        return number_text(word)
    raise Refused("ERR Command arguments must be strings or integers")


def _reply_list(*values: object) -> list[Reply]:
    return [*map(_reply, values)]


def _reply(value: object) -> Reply:
    """Turn what Lua returned into a reply."""
    if value is True:
        return 1
    if value is False:
        return None
    if isinstance(value, _Made):
        return value.reply
    if isinstance(value, float):
        return int(value) if abs(value) < 2**63 else _NO_INTEGER
    return value


@cache
def scripting() -> Scripting:
    """Return the language, which all stores of this process share."""
    return Scripting()
