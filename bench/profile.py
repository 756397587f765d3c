"""Samples what a server does during a workload: `python -m bench.profile chat-ack`.

What the interpreter, the C library and the kernel do counts for the compiled function, or that of
uvloop, orjson or aiohttp, that asked for it. It needs `perf`, and Holdfast as `make` installs it.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bench.measure import Conditions, allow_many_files, load
from bench.plan import BENCH, choose, read_servers, read_workloads
from bench.processes import running
from bench.run import CACHE

# So many samples of each second of the processor's time, with so many bytes of the stack.
RATE = 1500
STACK = 16_384
# Those of sessions; supervisors and importers have others.
_SERVES = re.compile(r"holdfast(-server|/\d+)")
_WARMUP = re.compile(r"--warmup (\d+)")
# The objects whose functions count, by a part of their name.
_OWNERS = ("holdfast__mypyc", "uvloop/loop", "orjson", "_http_parser", "_http_writer", "hiredis")
# What mypyc and Cython call for the code that they have compiled.
_OF_COMPILERS = re.compile(r"CPy(?!Def_|Py_|Gen_)|__Pyx_|Py")
_COMPILED = re.compile(r"CPyDef_|CPyPy_")
_CYTHON = re.compile(r"__pyx_\w*?\d*uvloop_4loop_(?:\d+)?")
# The address, the name with an offset, and the object of a frame.
_FRAME = re.compile(r"\s*[0-9a-f]+ (.*?)(?:\+0x[0-9a-f]+)? \((\S*)\)$")
_ELSEWHERE = "interpreted, or not known"

# The name and the object of each frame, from the innermost one.
Stack = list[tuple[str, str]]


class Profile:
    """Samples by function: those in which it is the innermost of its kind, and all with it."""

    def __init__(self) -> None:
        self.own: Counter[str] = Counter()
        self.all: Counter[str] = Counter()
        self.samples = 0

    def add(self, stack: Stack) -> None:
        names = [plain(name) for name, place in stack if _is_owner(name, place)]
        self.samples += 1
        self.own[names[0] if names else _ELSEWHERE] += 1
        self.all.update(set(names))

    def rows(self, most: int) -> list[tuple[str, float, float]]:
        """Each function with its own share, and that of all that it calls, in percent."""
        unit = max(self.samples, 1) / 100
        return [
            (name, round(count / unit, 1), round(self.all[name] / unit, 1))
            for name, count in self.own.most_common(most)
        ]


def _is_owner(name: str, place: str) -> bool:
    return any(each in place for each in _OWNERS) and _OF_COMPILERS.match(name) is None


def plain(name: str) -> str:
    """Return the name as it is in the sources, with its module."""
    if _COMPILED.match(name):
        return ".".join(part.strip("_") for part in _COMPILED.sub("", name).split("___"))
    return _CYTHON.sub("uvloop.", name)


def stacks(lines: Iterable[str]) -> Iterator[Stack]:
    """Yield the stacks in the output of `perf script`, which an empty line ends."""
    stack: Stack = []
    for line in lines:
        found = _FRAME.match(line.rstrip())
        if found is not None:
            stack.append((found[1], found[2]))
        elif stack and not line.strip():
            yield stack
            stack = []
    if stack:
        yield stack


def record(pids: Sequence[int], seconds: float, file: Path) -> None:
    words = ["perf", "record", "-e", "cpu-clock", "-F", str(RATE), "-o", str(file)]
    words += ["--call-graph", f"dwarf,{STACK}", "-p", ",".join(map(str, pids))]
    done = subprocess.run(
        [*words, "--", "sleep", str(seconds)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"perf could not sample: {done.stderr.strip()}")


def read(file: Path) -> Profile:
    words = ["perf", "script", "-i", str(file), "-F", "ip,sym,symoff,dso", "--no-inline"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    profile = Profile()
    for stack in stacks(done.stdout.splitlines()):
        profile.add(stack)
    return profile


def _serving(pids: Iterable[int]) -> list[int]:
    return [each for each in pids if _SERVES.match(Path(f"/proc/{each}/comm").read_text())]


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.profile", description=__doc__)
    add = parser.add_argument
    add("workload")
    add("--server", default="holdfast")
    add("--seconds", type=float, default=7.0, help="how long to sample, after the warm-up")
    add("--most", type=int, default=10, help="how many functions to print")
    add("--json", action="store_true")
    add("--out", type=Path, default=CACHE / "profile")
    add("--loader", type=Path, default=CACHE / "bayeux_load")
    return parser.parse_args()


def main() -> None:
    options = parse_arguments()
    if shutil.which("perf") is None:
        sys.exit("perf is not installed; Debian has it in linux-perf")
    [spec] = choose(read_servers(BENCH / "servers.toml"), [options.server])
    [workload] = read_workloads(BENCH / "workloads.toml", options.workload)
    options.out.mkdir(parents=True, exist_ok=True)
    conditions = Conditions(
        options.loader, options.out, server_cpus="0", loader_cpus="1", timeout_s=400
    )
    allow_many_files()
    log, file = options.out / "server.log", options.out / "perf.data"
    warmup = _WARMUP.search(workload.args)
    with running(spec, cpus="0", log=log) as server, ThreadPoolExecutor(1) as loader:
        loading = loader.submit(load, server, workload.args, conditions=conditions)
        time.sleep(1.0 + (int(warmup[1]) if warmup else 0))
        record(_serving(server.pids), options.seconds, file)
        loading.result()
    found = read(file)
    if options.json:
        print(json.dumps({"samples": found.samples, "rows": found.rows(options.most)}))
        return
    print(f"{workload.name}: {found.samples} samples\n")
    print("| Function | Own % | All % |\n| --- | --- | --- |")
    for name, own, whole in found.rows(options.most):
        print(f"| `{name}` | {own} | {whole} |")


if __name__ == "__main__":
    main()
