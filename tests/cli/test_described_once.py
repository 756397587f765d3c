"""REST, the command line and the pipeline take the same filters and options, field by field."""

import ast
import re
from collections.abc import Iterator
from dataclasses import fields
from typing import Any, get_args

import pytest
from pydantic import BaseModel

from holdfast.cli.main import load
from holdfast.store.letters.filter import LetterFilter
from holdfast.store.replays.parameters import ReplayOptions
from holdfast.web.admin.resources import ROUTES
from holdfast.web.admin.session_filter import SessionFilter
from tests.serving import ROOT

PAGE = {"cursor", "limit", "sort"}


def parameters(path: str) -> set[str]:
    (route,) = [each for each in ROUTES if (each.method, each.path) == ("GET", path)]
    return set(route.params.model_fields)


def options(*words: str) -> set[str]:
    command: Any = load(words[0])
    for word in words[1:]:
        command = command.commands[word]
    return {each.name for each in command.params}


@pytest.mark.parametrize(
    ("path", "filter"),
    [
        ("/dead-letters", LetterFilter),
        ("/dead-letters/export", LetterFilter),
        ("/sessions", SessionFilter),
    ],
)
def test_a_query_has_the_fields_of_its_filter(path: str, filter: type[BaseModel]) -> None:
    # Single letters are named in bodies: a query has no lists.
    assert parameters(path) - PAGE == filter.model_fields.keys() - {"ids"}


@pytest.mark.parametrize("command", ["list", "purge", "export", "replay"])
def test_commands_about_letters_have_the_fields_of_the_filter(command: str) -> None:
    assert LetterFilter.model_fields.keys() - {"ids"} <= options("dead", command)


def test_a_replay_plan_of_the_pipeline_has_the_fields_of_the_filter() -> None:
    # Only the server knows the state of a letter.
    wanted = LetterFilter.model_fields.keys() - {"ids", "state"}
    assert wanted <= options("pipeline", "replay")


@pytest.mark.parametrize("words", [("dead", "replay"), ("pipeline", "replay")])
def test_a_replay_has_the_same_options_wherever_it_begins(words: tuple[str, ...]) -> None:
    assert ReplayOptions.model_fields.keys() - {"edit"} <= options(*words)


@pytest.mark.parametrize("command", ["list", "end"])
def test_commands_about_sessions_have_the_fields_of_the_filter(command: str) -> None:
    # Commands themselves exclude sessions that begin later.
    assert SessionFilter.model_fields.keys() - {"begun_before"} <= options("session", command)


@pytest.mark.parametrize(
    ("path", "name", "kind"),
    [
        ("/dead-letters/purge", "filter", LetterFilter),
        ("/replays", "filter", LetterFilter),
        ("/replays", "options", ReplayOptions),
        ("/sessions/end", "filter", SessionFilter),
    ],
)
def test_bodies_of_routes_use_the_same_models(path: str, name: str, kind: type[BaseModel]) -> None:
    (route,) = [each for each in ROUTES if (each.method, each.path) == ("POST", path)]
    assert issubclass(route.body or BaseModel, BaseModel)
    body: Any = route.body
    assert body.model_fields[name].annotation is kind


def rows() -> Iterator[tuple[str, set[str], set[str]]]:
    """The route of each command without a body, its parameters there, and its plain columns."""
    for name in ("rows", "dispatcher"):
        tree = ast.parse((ROOT / "app/cli" / f"{name}.py").read_text())
        for described in tree.body:
            if isinstance(described, ast.FunctionDef) and described.decorator_list:
                (row,) = described.decorator_list
                assert isinstance(row, ast.Call)
                match ast.unparse(row.func), row.args:
                    case (("lists" | "lists_first"), [_, _, path, columns]):
                        route = f"GET {ast.literal_eval(path)}"
                        shown = {*re.findall(r"'(\w+)'", ast.unparse(columns))}
                    case "asks", [_, _, path, _]:
                        route, shown = ast.literal_eval(path), set()
                    case "_clears", [_, path, _]:
                        route, shown = f"DELETE {ast.literal_eval(path)}", set()
                    case _:
                        continue
                taken = {each.arg for each in described.args.kwonlyargs} - {"yes"}
                yield route.replace("{key}", "{subject}/{number}"), taken, shown


@pytest.mark.parametrize(("route", "taken", "shown"), [*rows()], ids=str)
def test_a_command_without_a_body_asks_what_a_route_takes_and_shows_what_it_answers(
    route: str, taken: set[str], shown: set[str]
) -> None:
    (asked,) = [each for each in ROUTES if f"{each.method} {each.path}" == route]
    body: Any = asked.body or asked.params
    assert taken - {"key"} <= asked.params.model_fields.keys() | body.model_fields.keys()
    if shown:
        (item,) = get_args(asked.answer)
        assert shown <= {each.name for each in fields(item)} | {"OLDEST"}


def test_most_commands_that_ask_or_change_one_thing_have_no_body() -> None:
    assert len([*rows()]) >= 15
