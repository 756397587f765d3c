"""Follows a page as its readers do: saves its files, and runs its commands in their order.

A comment over a block of code says what to do with it, and readers do not see it:

| Comment | What is done |
| --- | --- |
| `file: NAME` | the block is saved as this file |
| `run` | the block is a script, which runs to its end |
| `look` | the block is a script that only looks: it runs until it prints what the next shows |
| `terminal: NAME` | the block is a command, which runs in a terminal of this name |
| `shows`, `shows: NAME` | the script, or that terminal, has printed the block; `…` is anything |
| `in any order` | as `shows`, except for the order of the lines |
| `stop: NAME`, `kill: NAME` | no block: Ctrl-C in that terminal, or `kill -9` |
| `open: URL`, `fill: LABEL = TEXT`, `click: NAME`, `sees: TEXT` | no block: in a browser |
| `left to the reader: WHY` | nothing |
"""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from select import select
from typing import NamedTuple, Protocol

from bench.processes import family, reserved_port
from tests.clients.node_client import MODULES, require_node
from tests.pages import ROOT, USUAL_PLACE
from tests.serving import PROGRAM, environment, kill_orphans_in

LIMIT_S = 60.0
PACKAGES = ("cometd", "cometd-nodejs-client", "faye")
# Where pages have a web server of their own.
OTHER_PLACE = "127.0.0.1:8000"
_STEP = re.compile(
    r"^<!-- (?P<what>[a-z ]+?)(?:: (?P<of>[^\n]*?))? -->$"
    r"(?:\n+```(?P<language>\w*)\n(?P<text>.*?)^```$)?",
    re.DOTALL | re.MULTILINE,
)
_BLOCK = re.compile(r"^```\w*\n.*?^```$", re.DOTALL | re.MULTILINE)
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")
# Signs of a spinner, of which nothing stays on a screen.
SPINNING = tuple("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")
DOCS = ROOT / "docs"
LESSONS = [
    ROOT / "README.md",
    DOCS / "tutorials" / "order-desk.md",
    DOCS / "tutorials" / "work-queue.md",
    DOCS / "tutorials" / "login.md",
    DOCS / "how-to" / "you-asked.md",
]
LESSONS_IN_A_BROWSER = [DOCS / "tutorials" / "chat.md"]
IN_A_BROWSER = {"open", "fill", "click", "sees"}
LEFT = "left to the reader"
# What is another each time, and how wide columns are.
DIFFERS = {
    r"\b\w{6}-\d{19}\b": "ID",
    r"\b\d{16,19}\b": "NUMBER",
    r"\b\d+(\.\d+)?(ms|s|m|h|d)\b": "AGE",
    r"\b\d\d:\d\d:\d\d\b": "TIME",
    # Where the documentation was built, errors name their place in it.
    r"; see http\S+": "",
    r',"ext":\{"see":"[^"]*"\}': "",
    "─+": "─",
    " +": " ",
}


class Step(NamedTuple):
    """What a comment says, and the block under it."""

    what: str
    of: str
    text: str


def steps(page: Path) -> list[Step]:
    return [
        Step(found["what"], found["of"] or "", found["text"] or "")
        for found in _STEP.finditer(page.read_text("utf-8"))
    ]


def untold(page: Path) -> list[str]:
    """The blocks of a page of which no comment says what to do with them."""
    page_text = page.read_text("utf-8")
    told = [found.span() for found in _STEP.finditer(page_text)]
    return [
        block[0]
        for block in _BLOCK.finditer(page_text)
        if not any(start <= block.start() < end for start, end in told)
    ]


class Terminal:
    """A command with a terminal of its own, so that it prints what readers see."""

    def __init__(self, command: str, folder: Path, around: dict[str, str]) -> None:
        self._screen, theirs = os.openpty()
        self._process = subprocess.Popen(
            ["sh", "-eu", "-c", command],
            cwd=folder,
            env=around,
            stdin=subprocess.DEVNULL,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        self._printed = b""

    def read(self, is_enough: Callable[[str], bool]) -> str:
        """Wait until that is printed, or the command has ended; return it, and forget it."""
        text, self._printed = self.look(is_enough), b""
        return text

    def look(self, is_enough: Callable[[str], bool]) -> str:
        ends = time.monotonic() + LIMIT_S
        while not is_enough(self._text()):
            if not select([self._screen], [], [], max(0.0, ends - time.monotonic()))[0]:
                break
            # The screen of a command that has ended cannot be read.
            with suppress(OSError):
                if chunk := os.read(self._screen, 65536):
                    self._printed += chunk
                    continue
            break
        return self._text()

    def _text(self) -> str:
        text = _ESCAPES.sub("", self._printed.decode("utf-8", "replace"))
        # Of a line that was written several times, as a progress is, readers see the last.
        lines = [line.rpartition("\r")[2] for line in text.replace("\r\n", "\n").split("\n")]
        return "\n".join(line for line in lines if not line.startswith(SPINNING))

    def signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)

    def wait(self) -> int:
        return self._process.wait(LIMIT_S)

    def close(self) -> None:
        # A server that a supervisor has started again has a session of its own.
        for pid in family(self._process.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait()
        os.close(self._screen)


def is_shown(expected: str) -> Callable[[str], bool]:
    """What tells whether a text is the expected one, in which `…` stands for anything.

    A line with nothing else stands for any number of lines.
    """
    pattern = re.compile("".join(map(_pattern, _alike(expected).splitlines())) + r"\s*")
    return lambda text: pattern.fullmatch(_alike(f"{text.rstrip()}\n")) is not None


def _alike(text: str) -> str:
    """A text without what differs each time."""
    for pattern, name in DIFFERS.items():
        text = re.sub(pattern, name, text)
    return text


def _pattern(line: str) -> str:
    if line == "…":
        return r"(?:.*\n)*?"
    return ".*?".join(map(re.escape, line.rstrip().split("…"))) + r"\s*\n"


def is_shown_in_any_order(expected: str) -> Callable[[str], bool]:
    """The same for lines of several threads, which may be written into each other's line ends."""
    lines = [
        "[^\\n]*".join(map(re.escape, line.split("…"))) for line in _alike(expected).splitlines()
    ]

    def holds(text: str) -> bool:
        rest = _alike(text)
        for line in lines:
            rest, count = re.subn(line, "", rest, count=1)
            if not count:
                return False
        return not rest.strip()

    return holds


class Visit(Protocol):
    """Does in a browser what somebody does there."""

    def open(self, url: str) -> None: ...
    def fill(self, label: str, text: str) -> None: ...
    def click(self, name: str) -> None: ...
    def sees(self, text: str) -> None: ...


class Lesson:
    """A page that is being followed, in a folder of its own."""

    def __init__(self, folder: Path, stack: ExitStack, visit: Visit | None = None) -> None:
        self._folder = folder
        self._visit = visit
        self._stack = stack
        ports = [stack.enter_context(reserved_port()) for _ in range(2)]
        self._places = dict(zip((USUAL_PLACE, OTHER_PLACE), ports, strict=True))
        self._around = environment() | {
            # As where readers are.
            "HOLDFAST_SUPERVISOR": "on",
            "PATH": f"{self._commands()}:{os.environ['PATH']}",
            "HOLDFAST_PORT": str(ports[0]),
            "HOLDFAST_URL": f"http://127.0.0.1:{ports[0]}",
            "no_proxy": "127.0.0.1",
            "NO_COLOR": "1",
            "TERM": "xterm",
            "COLUMNS": "100",
        }
        self._modules()
        self._terminals = dict[str, Terminal]()
        self._script = ""
        self._said = ""
        stack.callback(kill_orphans_in, folder)

    def _commands(self) -> Path:
        """A folder with `holdfast` and `python`, as after an installation."""
        folder = self._folder / ".commands"
        folder.mkdir()
        for name, words in {"holdfast": PROGRAM, "python": (sys.executable,)}.items():
            script = folder / name
            script.write_text(f'#!/bin/sh\nexec {" ".join(words)} "$@"\n')
            script.chmod(0o755)
        return folder

    def _modules(self) -> None:
        """What `npm install` would bring."""
        folder = self._folder / "node_modules"
        folder.mkdir()
        (folder / "holdfast-bayeux").symlink_to(ROOT / "static" / "js")
        for name in PACKAGES:
            (folder / name).symlink_to(MODULES / name)

    def follow(self, page: Path) -> None:
        for step in steps(page):
            try:
                self._take(step)
            except AssertionError as error:
                raise AssertionError(f"{page.relative_to(ROOT)}: {step}\n{error}") from error

    def _take(self, step: Step) -> None:
        text, of = self._here(step.text), self._here(step.of)
        if step.what in IN_A_BROWSER:
            assert self._visit is not None, "this lesson needs a browser"
            getattr(self._visit, step.what)(*of.split(" = "))
        elif step.what != LEFT:
            getattr(self, f"_{step.what.replace(' ', '_')}")(of, text)

    def _file(self, name: str, text: str) -> None:
        path = self._folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")

    def _run(self, _: str, script: str) -> None:
        self._script = ""
        self._said = self._printed_by(script)

    def _look(self, _: str, script: str) -> None:
        self._script = script

    def _terminal(self, name: str, command: str) -> None:
        terminal = self._terminals[name] = Terminal(command, self._folder, self._around)
        self._stack.callback(terminal.close)
        # A client says that it has subscribed, and a server that it is ready.
        sign = "is ready: " if "holdfast serve" in command else "\n"
        said = terminal.look(lambda text: sign in text)
        assert sign in said, said

    def _shows(self, name: str, text: str) -> None:
        self._expect(name, text, is_shown(text))

    def _in_any_order(self, name: str, text: str) -> None:
        self._expect(name, text, is_shown_in_any_order(text))

    def _stop(self, name: str, _: str) -> None:
        self._terminals[name].signal(signal.SIGINT)
        self._terminals[name].wait()

    def _kill(self, name: str, _: str) -> None:
        self._terminals[name].signal(signal.SIGKILL)
        self._terminals[name].wait()

    def _here(self, text: str) -> str:
        for place, port in self._places.items():
            text = text.replace(place, f"127.0.0.1:{port}")
            usual = place.partition(":")[2]
            text = re.sub(rf"(http\.server |--port ){usual}\b", rf"\g<1>{port}", text)
        return text

    def _printed_by(self, script: str) -> str:
        with closing(Terminal(script, self._folder, self._around)) as terminal:
            said = terminal.read(lambda text: False)
            code = terminal.wait()
        # What looks may look too early.
        assert code == 0 or script == self._script, f"exit code {code}:\n{said}"
        return said

    def _expect(self, name: str, expected: str, is_it: Callable[[str], bool]) -> None:
        said = self._terminals[name].read(is_it) if name else self._said
        ends = time.monotonic() + LIMIT_S
        while not name and self._script and time.monotonic() < ends:
            said = self._printed_by(self._script)
            if is_it(said):
                break
        assert is_it(said), f"expected:\n{expected}\nprinted:\n{said}"


def follow(page: Path, folder: Path, visit: Visit | None = None) -> None:
    """Do what a page says."""
    if "```js" in page.read_text("utf-8"):
        require_node()
    with ExitStack() as stack:
        Lesson(folder, stack, visit).follow(page)
