"""Checks the hooks of applications, which are called and never awaited, so none may be async."""

import inspect
from collections.abc import Sequence


class HookFailed(Exception):
    """A hook raised an exception that would end the program or cancel its caller."""


def is_own(extension: object) -> bool:
    """Return whether the extension is a built-in one, whose output is always JSON."""
    return type(extension).__module__.startswith("holdfast.extensions.")


def names_of(extensions: Sequence[object]) -> str:
    """Return the extensions' names for the log, without built-in ones."""
    names = [type(each).__name__ for each in extensions if not is_own(each)]
    return " or ".join(dict.fromkeys(names))


def check_hook(name: str, hook: object) -> None:
    """Raise `TypeError` if calling the hook would only create a coroutine or generator."""
    if _is_lazy(hook) or _is_lazy(type(hook).__call__):
        raise TypeError(
            f"{name} must be a plain function, neither async nor a generator: the server calls it "
            "and awaits nothing. Work that takes time belongs in a task of your own"
        )


def check_outcome(name: str, outcome: object) -> None:
    """Raise `TypeError` if a hook returned a coroutine, task or future, which is not awaited."""
    if inspect.iscoroutine(outcome):
        outcome.close()
    # Tasks and futures keep running: they may have existed before the call.
    if inspect.isawaitable(outcome):
        raise TypeError(f"{name} returned a {type(outcome).__name__}, which nobody awaits")


def _is_lazy(function: object) -> bool:
    return (
        inspect.iscoroutinefunction(function)
        or inspect.isasyncgenfunction(function)
        or inspect.isgeneratorfunction(function)
    )
