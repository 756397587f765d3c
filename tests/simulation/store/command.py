"""The table of commands on keys."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.simulation.store.keyspace import Keyspace
from tests.simulation.store.replies import NOT_AN_INTEGER, Refused, Reply

Words = Sequence[bytes]
Run = Callable[[Keyspace, Words], Reply]


@dataclass(frozen=True, slots=True)
class Command:
    """A command on keys.

    `arity` counts words with the name; a negative one is the least.
    """

    name: str
    run: Run
    arity: int
    # Whether it writes, and whether it may need memory.
    writes: bool
    grows: bool
    # The positions of its keys in its words: the first, and whether all others are keys, too.
    first_key: int
    has_many_keys: bool

    def check(self, words: Words) -> None:
        """Refuse a wrong number of words."""
        if not self.fits(len(words)):
            raise Refused(f"ERR wrong number of arguments for '{self.name}' command")

    def fits(self, count: int) -> bool:
        return count == self.arity or count >= -self.arity > 0

    def keys(self, words: Words) -> Words:
        if not self.first_key:
            return []
        return words[self.first_key :] if self.has_many_keys else [words[self.first_key]]


class UnknownCommand(AssertionError):
    """This store lacks a command: write it, and compare it with the real one."""


COMMANDS: dict[bytes, Command] = {}


def command(
    name: str,
    arity: int,
    *,
    writes: bool = False,
    grows: bool = False,
    first_key: int = 1,
    has_many_keys: bool = False,
) -> Callable[[Run], Run]:
    """Enter a function into the table."""

    def enter(run: Run) -> Run:
        made = Command(name.lower(), run, arity, writes or grows, grows, first_key, has_many_keys)
        COMMANDS[name.encode()] = COMMANDS[name.lower().encode()] = made
        return run

    return enter


def command_named(name: bytes) -> Command | None:
    return COMMANDS.get(name) or COMMANDS.get(name.upper())


def known(name: bytes) -> Command:
    found = command_named(name)
    if found is None:
        raise UnknownCommand(name)
    return found


def whole(word: bytes, problem: str = NOT_AN_INTEGER) -> int:
    """Return the number that the word is."""
    try:
        number = int(word)
    except ValueError:
        number = -(2**64)
    if not -(2**63) <= number < 2**63 or b"%d" % number != word:
        raise Refused(problem)
    return number
