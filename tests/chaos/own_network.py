"""A network of this process and its children alone, in which users can be cut off from all others.

It needs the rights of root, and the commands `unshare` and `ip`.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator

_VARIABLE = "HOLDFAST_TEST_NETWORK"
# Rules are read in this order; without ours, everything is found in the table `local`.
_FIRST, _LOCAL = "10", "100"


def is_own() -> bool:
    """Whether this process is in a network of its own."""
    return _VARIABLE in os.environ


def enter(module: str) -> None:
    """Run this program again in a network of its own, where that is possible."""
    is_possible = os.getuid() == 0 and shutil.which("unshare") and shutil.which("ip")
    if is_own() or not is_possible:
        return
    os.environ[_VARIABLE] = "own"
    words = ["unshare", "--net", "--", sys.executable, "-m", module, *sys.argv[1:]]
    os.execvp(words[0], words)


def set_up() -> None:
    _ip("link", "set", "lo", "up")
    _ip("rule", "add", "pref", _LOCAL, "lookup", "local")
    _ip("rule", "del", "pref", "0")


def isolate(user: int, *ports: int) -> None:
    """Let nothing come from this user, and nothing reach it at these ports."""
    for each in _rules(user, ports):
        _ip("rule", "add", "pref", _FIRST, *each, "blackhole")


def heal(user: int, *ports: int) -> None:
    for each in _rules(user, ports):
        _ip("rule", "del", "pref", _FIRST, *each, "blackhole")


def _rules(user: int, ports: tuple[int, ...]) -> Iterator[list[str]]:
    yield ["uidrange", f"{user}-{user}"]
    for port in ports:
        yield ["ipproto", "tcp", "dport", str(port)]


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)
