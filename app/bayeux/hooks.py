"""What an application plugs in is called and never awaited; what would have to be is refused."""

import inspect
from collections.abc import Sequence


class HookFailed(Exception):
    """A hook tried to end the program, or what called it: neither is its to end."""


def is_own(extension: object) -> bool:
    """Whether it is one of ours, which are known to write JSON."""
    return type(extension).__module__.partition(".")[0] == "extensions"


def names_of(extensions: Sequence[object]) -> str:
    """What the log calls these extensions, but for our own."""
    names = [type(each).__name__ for each in extensions if not is_own(each)]
    return " or ".join(dict.fromkeys(names))


def check_hook(name: str, hook: object) -> None:
    """Raise `TypeError` if a call of the hook does nothing by itself."""
    if _is_lazy(hook) or _is_lazy(type(hook).__call__):
        raise TypeError(
            f"{name} must be a plain function, neither async nor a generator: the server calls it "
            "and awaits nothing. Work that takes time belongs into a task of yours"
        )


def check_outcome(name: str, outcome: object) -> None:
    """Raise `TypeError` if a hook returned work that nobody will do."""
    if inspect.iscoroutine(outcome):
        outcome.close()
        raise TypeError(f"{name} returned a coroutine, which nobody awaits")


def _is_lazy(function: object) -> bool:
    return (
        inspect.iscoroutinefunction(function)
        or inspect.isasyncgenfunction(function)
        or inspect.isgeneratorfunction(function)
    )
