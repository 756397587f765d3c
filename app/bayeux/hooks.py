"""What an application plugs in is called and never awaited; what would have to be is refused."""

import inspect


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
