"""Where `holdfast serve` begins: as supervisor, as importer, or as a server alone."""

import os
import sys
from collections.abc import Callable, Sequence
from itertools import pairwise

from holdfast.supervisor.control import STATE_VARIABLE, given_channel

# As the setting `supervisor` has it.
IS_DEFAULT = True
_FLAGS = {"--supervisor": True, "--no-supervisor": False}
_WORDS = {
    **dict.fromkeys(("1", "on", "t", "true", "y", "yes"), True),
    **dict.fromkeys(("0", "off", "f", "false", "n", "no"), False),
}


def enter(words: Sequence[str], load: Callable[[int], object]) -> None:
    """Supervise, or fork; returns in what is to serve. The words follow `holdfast serve`."""
    if channel := given_channel():
        # Each process has the code for its own part alone.
        from holdfast.supervisor.importer import serve_forks
        from holdfast.supervisor.system import RealSystem
        from holdfast.supervisor.titles import IMPORTER, name_process

        name_process(IMPORTER)
        serve_forks(channel, load, RealSystem())
        return
    left = os.environ.pop(STATE_VARIABLE, "")
    if left or is_wanted(words):
        from holdfast.supervisor.replacing import supervise
        from holdfast.supervisor.system import RealSystem
        from holdfast.supervisor.titles import SUPERVISOR, name_process

        name_process(SUPERVISOR)
        sys.exit(supervise(["serve", *words], left, RealSystem()))


def is_wanted(words: Sequence[str]) -> bool:
    """Whether a server with these words has a supervisor: by a flag, a variable, or the file.

    What is wrong with them, the server says.
    """
    if "--help" in words:
        return False
    flags = [_FLAGS[each] for each in words if each in _FLAGS]
    variable = os.environ.get("HOLDFAST_SUPERVISOR", "").lower()
    if flags or variable in _WORDS:
        return flags[-1] if flags else _WORDS[variable]
    given = [each.partition("=")[2] for each in words if each.startswith("--config=")]
    given += [after for each, after in pairwise(words) if each == "--config"]
    try:
        with open(given[-1] if given else "holdfast.toml", "rb") as file:
            # Many servers have none.
            import tomllib

            return bool(tomllib.load(file).get("supervisor", IS_DEFAULT))
    except (OSError, ValueError):
        return IS_DEFAULT
