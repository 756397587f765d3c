"""Commands that ask the server for one thing, or to change one: a route, and what is printed.

A function without a body describes each: its docstring is the help, and the route takes its
parameters: in the path, and all others in the query of a GET or DELETE, in the body of a POST or
PUT. What all such commands take is added, such as the server's address. `rows.py` has examples.
"""

import inspect
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from holdfast.cli.lists import First, Range, print_first, print_list
from holdfast.cli.options import ToServer, confirm, place_of
from holdfast.cli.output import Columns, Json, answer, print_facts
from holdfast.cli.program import Program
from holdfast.cli.remote import Server

Row = Callable[..., None]
Add = Callable[[Row], Row]
# Prints an answer, and may know what was asked.
Show = Callable[[Server, Json, Json], None]

_PLACE = re.compile(r"\{(\w+)\}")
# How the path of a request has what people write.
_IN_PATH: dict[str, Callable[[str], str]] = {
    "key": place_of,
    "host": lambda name: quote(name, safe=""),
    "subject": lambda name: quote(name.removeprefix("client/"), safe=""),
}


def lists(program: Program, name: str | None, path: str, columns: Columns) -> Add:
    """Add a command that shows the first items of a list, or all of them."""

    def run(*, shown: Range, server: ToServer, **given: Any) -> None:  # noqa: ANN401 - as options
        print_list(server, path, given, columns, shown)

    return _added(program, name, run)


def lists_first(program: Program, name: str, path: str, columns: Columns) -> Add:
    """Add a command that shows the first items of a list without pages."""

    def run(*, shown: First, server: ToServer, **given: Any) -> None:  # noqa: ANN401 - as options
        print_first(server, _place(path, given), given, columns, shown)

    return _added(program, name, run)


def asks(program: Program, name: str, route: str, show: Show, *, question: str = "") -> Add:
    """Add a command that shows the answer to one request.

    With a question, the function has the option `yes`.
    """
    method, path = route.split()

    def run(*, server: ToServer, **given: Any) -> None:  # noqa: ANN401 - as options
        if question:
            confirm(question.format_map(given), yes=given.pop("yes"))
        asked = dict(given)
        place = _place(path, asked)
        sent = {"params": asked} if method in ("GET", "DELETE") else {"body": asked}
        show(server, server.ask(method, place, **sent), given)

    return _added(program, name, run)


def facts(server: Server, found: Json, asked: Json) -> None:
    """Show the fields of the answer."""
    print_facts(found, as_json=server.as_json)


def says(text: str, **done: object) -> Show:
    """Show a sentence about what was asked. If the server answers nothing, `done` says the rest."""

    def show(server: Server, found: Json, asked: Json) -> None:
        answer(found or asked | done, text.format_map(asked), as_json=server.as_json)

    return show


def _added(program: Program, name: str | None, run: Row) -> Add:
    def add(described: Row) -> Row:
        each, common = (inspect.signature(it).parameters.values() for it in (described, run))
        both = [*each, *(one for one in common if one.kind is one.KEYWORD_ONLY)]
        run.__signature__ = inspect.Signature(both)  # type: ignore[attr-defined]
        run.__name__, run.__doc__ = described.__name__, described.__doc__
        program.command(name)(run)
        return described

    return add


def _place(path: str, given: Json) -> str:
    """Return the path with what it takes from these values."""
    return path.format_map({name: _IN_PATH[name](given.pop(name)) for name in _PLACE.findall(path)})
