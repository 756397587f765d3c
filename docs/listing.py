"""Lists the requests of the administration and the commands, for `docs.generate`."""

from collections.abc import Iterable, Iterator

from pydantic import BaseModel
from typer._click import Command
from typer.core import TyperArgument, TyperGroup

from holdfast.cli.main import COMMANDS, load
from holdfast.web.admin.resources import ROUTES
from holdfast.web.admin.route import PLACE, Route

# What stands for the places in a path, and for the arguments of a command.
SAMPLES = {
    "subject": "joe",
    "number": "1",
    "result": "dead",
    "fingerprint": "FINGERPRINT",
    "host": "a.example",
}
_UNSAID = ("--help", "--url", "--token-file", "--json", "--limit", "--sort", "--yes")


def requests() -> Iterator[tuple[str, str, str]]:
    """Yield each request, what it does, and what it takes: in the query, or in the body."""
    for route in ROUTES:
        route.build()
        path = PLACE.sub(lambda found: SAMPLES.get(found[1], "ID"), route.path)
        yield f"`{route.method} {path}`", route.summary, _coded(_taken_by(route))


def _taken_by(route: Route) -> Iterator[str]:
    places = PLACE.findall(route.path)
    yield from (name for name in route.params.model_fields if name not in places)
    if route.body is not None:
        yield from route.body.model_fields if issubclass(route.body, BaseModel) else ["JSON lines"]


def commands() -> Iterator[tuple[str, str, str]]:
    """Yield each command, what it does, and the options that not all of them have."""
    for name, text in COMMANDS.items():
        yield from _commands_of(name, load(name), text)


def _commands_of(name: str, found: Command, text: str) -> Iterator[tuple[str, str, str]]:
    if isinstance(found, TyperGroup):
        for part, command in found.commands.items():
            yield from _commands_of(f"{name} {part}", command, command.help or "")
        return
    arguments = [each for each in found.params if isinstance(each, TyperArgument)]
    words = [name, *map(_argument, arguments)]
    options = [each.opts[0] for each in found.params if each not in arguments]
    told = "[settings](settings.md)" if name == "serve" else _coded(_told(options))
    yield f"`holdfast {' '.join(words)}`", text.partition("\n\n")[0].replace("\n", " "), told


def _argument(argument: TyperArgument) -> str:
    shown = (argument.name or "").upper() + ("..." if argument.nargs == -1 else "")
    return shown if argument.required else f"[{shown}]"


def _told(options: list[str]) -> Iterator[str]:
    yield from (each for each in options if each.startswith("--") and each not in _UNSAID)


def _coded(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
