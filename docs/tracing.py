"""Records which functions of the server call which, and draws the modules that matter most."""

import inspect
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import NamedTuple, Self

PACKAGE = Path(__file__).parents[1] / "holdfast"
LAYERS = ("compose", "web", "bayeux", "extensions", "delivery", "journal", "store")
MAX_MODULES, MAX_ARROWS = 16, 27
# How much more a call between layers weighs than one within.
CROSSING = 5

# Caller, callee, and the name of the function; the caller is None for the event loop.
_Arrow = tuple[str | None, str, str]

_RESUMED = inspect.CO_COROUTINE | inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR


class Function(NamedTuple):
    layer: str
    module: str
    name: str


class Call(NamedTuple):
    """One call; `parent` is the index of the call that made it, None for the event loop."""

    function: Function
    parent: int | None


# Who called, and what; the caller is None for the event loop.
Step = tuple[Function | None, Function]


class Trace:
    """The calls between functions of the server, in their order."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self._known: dict[CodeType, Function | None] = {}
        self._live: dict[FrameType, int] = {}

    @contextmanager
    def recording(self) -> Iterator[Self]:
        """Record what this thread calls."""
        sys.setprofile(self._see)
        try:
            yield self
        finally:
            sys.setprofile(None)
            self._live.clear()

    def steps(self, first: int = 0) -> list[Step]:
        """Who called, and what, from the given call on."""
        return [
            (None if parent is None else self.calls[parent].function, function)
            for function, parent in self.calls[first:]
        ]

    def _see(self, frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame not in self._live:
            self._begin(frame)
        elif event == "return" and not frame.f_code.co_flags & _RESUMED:
            self._live.pop(frame, None)

    def _begin(self, frame: FrameType) -> None:
        function = self._function(frame.f_code)
        if function is not None:
            caller = frame.f_back
            while caller is not None and caller not in self._live:
                caller = caller.f_back
            self._live[frame] = len(self.calls)
            self.calls.append(Call(function, None if caller is None else self._live[caller]))

    def _function(self, code: CodeType) -> Function | None:
        if code not in self._known:
            self._known[code] = _function(code)
        return self._known[code]


def _function(code: CodeType) -> Function | None:
    """The server's function with this code; None for comprehensions and for code of others."""
    path = Path(code.co_filename)
    if code.co_name.startswith("<") or not path.is_relative_to(PACKAGE):
        return None
    module = path.relative_to(PACKAGE).with_suffix("")
    return Function(module.parts[0], module.as_posix(), code.co_qualname)


class Walk:
    """What the server did for one purpose.

    Args:
        calls: Calls in their order; the parent of each is in front of it.
    """

    def __init__(self, calls: Sequence[Call]) -> None:
        self._calls = calls
        self.size = len(calls)
        # That of each call, in their order.
        self.functions = [call.function for call in calls]
        functions = set(self.functions)
        changes = sum(
            parent is not None and calls[parent].function.layer != function.layer
            for function, parent in calls
        )
        # Functions, modules, and calls from one layer to another.
        self.numbers = (len(functions), len({each.module for each in functions}), changes)
        self._weights = _weights(calls)

    def picture(self, others: Sequence["Walk"] = ()) -> str:
        """A sequence diagram of the modules and calls that matter most and are in all walks."""
        ranked = self._ranked()
        # Of each layer the first, at least.
        first = {_layer(module): module for module in reversed(ranked)}
        modules = {*ranked[:MAX_MODULES], *first.values()}
        arrows = self._heaviest(modules, others)
        # A module without an arrow is not drawn, so others lead to what it called.
        while modules != (drawn := {module for arrow in arrows for module in arrow[:2] if module}):
            modules = drawn
            arrows = self._heaviest(modules, others)
        lines = ["```mermaid", "sequenceDiagram", "    participant event_loop as event loop"]
        for layer in LAYERS:
            members = [module for module in self._ranked() if module in modules]
            members = [module for module in members if _layer(module) == layer]
            if members:
                lines.append(f"    box {layer}")
                lines += [f"        participant {_id(m)} as {_title(m)}" for m in members]
                lines.append("    end")
        lines += [f"    {_id(caller)}->>{_id(callee)}: {name}" for caller, callee, name in arrows]
        return "\n".join([*lines, "```", ""])

    def lacks(self, picture: str) -> set[str]:
        """The arrows of a picture for which there was no call."""
        ids = set(re.findall(r"participant (\w+) as", picture))
        modules = {function.module for function, _ in self._calls if _id(function.module) in ids}
        called = {
            f"{_id(caller)}->>{_id(callee)}: {name}"
            for caller, callee, name in self._arrows(modules)
        }
        return set(re.findall(r"\w+->>\w+: \w+", picture)) - called

    def _ranked(self) -> list[str]:
        """Modules that call others, by the number of their functions and of calls below them."""
        own = Counter(module for _, module, _ in {call.function for call in self._calls})
        led: Counter[str] = Counter()
        others: dict[str, set[str]] = {module: set() for module in own}
        for (function, parent), weight in zip(self._calls, self._weights, strict=True):
            caller = None if parent is None else self._calls[parent].function.module
            if caller != function.module:
                led[function.module] += weight
                if caller is not None:
                    others[caller].add(function.module)
        candidates = [module for module in own if len(others[module]) > 1]
        return sorted(candidates, key=lambda module: (-own[module] * led[module], module))

    def _heaviest(self, modules: set[str], others: Sequence["Walk"]) -> list[_Arrow]:
        """What to draw: of each pair of modules one arrow, in the order in which these began."""
        common = set.intersection(*(set(walk._arrows(modules)) for walk in (self, *others)))
        arrows = {arrow: w for arrow, w in self._arrows(modules).items() if arrow in common}
        best: dict[tuple[str | None, str], _Arrow] = {}
        for arrow in sorted(arrows, key=arrows.__getitem__, reverse=True):
            best.setdefault(arrow[:2], arrow)
        drawn = list(best.values())[:MAX_ARROWS]
        return [arrow for arrow in arrows if arrow in drawn]

    def _arrows(self, modules: set[str]) -> dict[_Arrow, int]:
        """Calls between modules, in the order of the first of each, with what they weigh."""
        nearest: list[str | None] = []
        arrows: dict[_Arrow, int] = {}
        for (function, parent), calls in zip(self._calls, self._weights, strict=True):
            caller = None if parent is None else nearest[parent]
            shown = function.module in modules
            nearest.append(function.module if shown else caller)
            name = function.name.rpartition(".")[2]
            if shown and caller != function.module and name != "__init__":
                arrow = caller, function.module, name
                crosses = caller is None or _layer(caller) != function.layer
                weight = calls * CROSSING if crosses else calls
                arrows[arrow] = max(weight, arrows.get(arrow, 0))
        return arrows


def busy(trace: Trace, idle: set[Step]) -> Walk:
    """A walk without calls that an idle server makes too, if that holds for all below them."""
    wanted = [step not in idle for step in trace.steps()]
    for index in range(len(wanted) - 1, -1, -1):
        parent = trace.calls[index].parent
        if wanted[index] and parent is not None:
            wanted[parent] = True
    places: dict[int | None, int | None] = {None: None}
    calls: list[Call] = []
    for index, (function, parent) in enumerate(trace.calls):
        if wanted[index]:
            places[index] = len(calls)
            calls.append(Call(function, places[parent]))
    return Walk(calls)


def _weights(calls: Sequence[Call]) -> list[int]:
    """How many calls each one led to, itself included."""
    weights = [1] * len(calls)
    for index in range(len(calls) - 1, -1, -1):
        parent = calls[index].parent
        if parent is not None:
            weights[parent] += weights[index]
    return weights


def _layer(module: str) -> str:
    return module.partition("/")[0]


def _title(module: str) -> str:
    """A package's own module goes by the name of the package."""
    return module.removesuffix("/__init__").rpartition("/")[2]


def _id(module: str | None) -> str:
    return "event_loop" if module is None else module.replace("/", "_")
