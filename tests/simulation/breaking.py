"""Breaks servers that are started meanwhile, in ways that end with a stack."""

import sys
from collections.abc import Callable
from contextlib import ExitStack
from types import ModuleType
from unittest.mock import patch

from holdfast.store.format import log_scripts, scripts
from holdfast.store.links.script import Script

# Enters what it changes, so that the change ends with the stack.
Damage = Callable[[ExitStack], None]


def by_name(*builds: Damage) -> dict[str, Damage]:
    """Return broken builds by the names of the functions that break them."""
    return {build.__name__: build for build in builds}


def nothing(*_: object, **__: object) -> None:
    """Instead of what should be done."""


def replace(stack: ExitStack, owner: object, name: str, broken: object) -> None:
    """Replace what is there: a name that has changed is noticed here."""
    stack.enter_context(patch.object(owner, name, broken))


def rewrite(stack: ExitStack, line: str, broken_line: str) -> None:
    """Break one line of all scripts that have it."""
    broken: dict[Script, Script] = {}

    def of(script: Script) -> Script:
        if script not in broken:
            with_note = None if script.with_note is None else of(script.with_note)
            source = script.source.replace(line, broken_line)
            broken[script] = Script(script.name, source, with_note)
        return broken[script]

    lists = (scripts.SCRIPTS, log_scripts.LOG_SCRIPTS)
    # Some scripts are not for the link, and in no list.
    known = [*vars(scripts).values(), *vars(log_scripts).values()]
    assert any(line in each.source for each in known if isinstance(each, Script)), line
    with_frames = {of(one): of(other) for one, other in log_scripts._WITH_FRAME.items()}
    replace(stack, log_scripts, "_WITH_FRAME", with_frames)
    for module in [*sys.modules.values()]:
        # Wherever they are called.
        if getattr(module, "__name__", "").startswith("holdfast."):
            _replace_all(stack, module, of)
    for some in lists:
        stack.callback(some.__setitem__, slice(None), [*some])
        some[:] = map(of, some)


def _replace_all(stack: ExitStack, module: ModuleType, of: Callable[[Script], Script]) -> None:
    for name, script in [*vars(module).items()]:
        if isinstance(script, Script):
            replace(stack, module, name, of(script))
