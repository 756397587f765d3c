"""Whatever a server has in memory has a row in the table of what becomes of it."""

import ast
from collections import Counter

import pytest

from holdfast.bayeux.leaving.table import TABLE, Fate
from holdfast.bayeux.server import Bayeux
from holdfast.bayeux.session import Session
from holdfast.bayeux.sessions.life import SessionLife
from holdfast.bayeux.state.server_state import ServerState
from holdfast.bayeux.wire.identity import Identity
from holdfast.delivery.messages.entries import Entry
from holdfast.delivery.messages.message import Event, Message
from holdfast.delivery.queues.charged import ChargedQueue
from holdfast.delivery.queues.dispatcher import Dispatcher
from holdfast.delivery.queues.in_flight import InFlight
from holdfast.delivery.queues.queue import CallbackQueue
from holdfast.delivery.queues.receivers import Receiver
from holdfast.delivery.requests.request import Request
from holdfast.delivery.routing.kept_messages import KeptMessages
from holdfast.delivery.shared_queues.shared_queues import SharedQueue
from tests.pages import ROOT

pytestmark = pytest.mark.untraced

# The classes of the core that have a state: first those of which a server has one object.
_ALL = (
    Bayeux,
    ServerState,
    SessionLife,
    Session,
    Receiver,
    Identity,
    InFlight,
    CallbackQueue,
    ChargedQueue,
    Entry,
    Dispatcher,
    Event,
    Message,
    SharedQueue,
    KeptMessages,
    Request,
)


def attributes() -> set[str]:
    found = {f"{kind.__name__}.{name}" for kind in _ALL for name in attributes_of(kind)}
    return found | {f"record.{name}" for name in records()}


def attributes_of(kind: type) -> set[str]:
    """What an object of the class has, by its source: compiled classes do not tell."""
    path = ROOT / "app" / kind.__module__.removeprefix("holdfast.").replace(".", "/")
    module = ast.parse(path.with_suffix(".py").read_text("utf-8"))
    [body] = [
        each.body
        for each in module.body
        if isinstance(each, ast.ClassDef) and each.name == kind.__name__
    ]
    for each in body:
        if isinstance(each, ast.Assign) and ast.unparse(each.targets[0]) == "__slots__":
            return {*ast.literal_eval(each.value)}
    [init] = [each for each in body if getattr(each, "name", "") == "__init__"]
    return {
        each.attr
        for each in ast.walk(init)
        if isinstance(each, ast.Attribute)
        and isinstance(each.ctx, ast.Store)
        and ast.unparse(each.value) == "self"
    }


def records() -> set[str]:
    """The classes of all records of features: what is passed to `with_record`."""
    found = set()
    for package in ("bayeux", "delivery"):
        for path in (ROOT / "app" / package).rglob("*.py"):
            for kind in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(kind, ast.FunctionDef | ast.ClassDef):
                    found |= {_class_of(each, kind) for each in _recorded_in(kind)}
    return {each for each in found if each}


def _recorded_in(place: ast.AST) -> list[ast.expr]:
    calls = [each for each in ast.walk(place) if isinstance(each, ast.Call)]
    return [each.args[1] for each in calls if ast.unparse(each.func) == "with_record"]


def _class_of(record: ast.expr, place: ast.FunctionDef | ast.ClassDef) -> str:
    """The class of a record: it is made there, or before, or is a parameter or the object."""
    if isinstance(record, ast.Call):
        return ast.unparse(record.func)
    name = ast.unparse(record)
    if isinstance(place, ast.ClassDef):
        return place.name if name == "self" else ""
    made = [
        ast.unparse(each.value.func)
        for each in ast.walk(place)
        if isinstance(each, ast.Assign)
        and isinstance(each.value, ast.Call)
        and ast.unparse(each.targets[0]) == name
        and ast.unparse(each.value.func).lstrip("_")[0].isupper()
    ]
    given = [
        ast.unparse(each.annotation)
        for each in place.args.args
        if each.arg == name and each.annotation is not None
    ]
    return next(iter([*made, *given]), "")


def test_each_attribute_is_in_one_row() -> None:
    named = Counter(each for row in TABLE for each in row.of)
    assert {each for each, count in named.items() if count > 1} == set()
    assert {*named} == attributes()


def test_each_row_says_why_it_is_harmless() -> None:
    assert {row.fate for row in TABLE} == {*Fate}
    assert all(row.what and row.why and row.of for row in TABLE)
