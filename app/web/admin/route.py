"""Routes of the administration, made from the signatures of the methods that answer them.

A method of a resource says what its request may have: the names in the path, and all others in the
query of a GET or DELETE, in the body of a POST or PUT. In a query a filter is given by its fields.
`key` is the subject and the number of a session in the path; `who` is the caller, and comes from
access control. What the method returns is the answer; a list becomes an object with its items.
"""

import inspect
import re
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, create_model

from holdfast.store.format.operator_input import Subject
from holdfast.web.admin.fields import SessionNumber
from holdfast.web.admin.tokens import Role
from holdfast.web.admin.views import Items

PLACE = re.compile(r"\{(\w+)\}")
_STRICT = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, defer_build=True)
_ROUTE = "_route"
_KEY = {"subject": (Subject, ...), "number": (SessionNumber, ...)}

Method = TypeVar("Method", bound=Callable[..., object])


class Lines:
    """Stands for JSON lines as the body or the answer of a route."""


@dataclass(frozen=True, slots=True)
class Route:
    """A method and a path of HTTP, with their role, parameters, body and answer."""

    method: str
    path: str
    # The resource's method. Generated clients use its name as the operation.
    handler: str
    summary: str
    # The parameters in the path and in the query.
    params: type[BaseModel]
    body: type[BaseModel] | type[Lines] | None
    # A type that pydantic knows, `Lines`, or None for no content.
    answer: Any
    takes_who: bool
    # Arguments that a query gives by their fields.
    filters: Mapping[str, type[BaseModel]] = field(hash=False)

    @property
    def name(self) -> str:
        return self.handler.strip("_")

    @property
    def role(self) -> Role:
        """A reader's token is enough for requests that only read."""
        return Role.READER if self.method == "GET" else Role.OPERATOR

    def build(self) -> None:
        """Build the models, as the first request would. No two threads may do it at once."""
        for model in (self.params, self.body):
            if isinstance(model, type) and issubclass(model, BaseModel):
                model.model_rebuild()

    def arguments(
        self, params: BaseModel, body: BaseModel | AsyncIterator[bytes] | None, who: str
    ) -> dict[str, Any]:
        """Return the arguments for the resource's method."""
        given = dict(params)
        if isinstance(body, BaseModel):
            given |= dict(body)
        elif body is not None:
            given["lines"] = body
        for name, kind in self.filters.items():
            fields = given.keys() & kind.model_fields.keys()
            given[name] = kind(**{field: given.pop(field) for field in fields})
        if "{number}" in self.path:
            given["key"] = f"{given.pop('subject')}/{given.pop('number')}"
        if self.takes_who:
            given["who"] = who
        return given


def route(method: str, path: str) -> Callable[[Method], Method]:
    """Let a method of a resource answer these requests; its docstring begins with their summary."""

    def mark(answered_by: Method) -> Method:
        setattr(answered_by, _ROUTE, _route_of(method, path, answered_by))
        return answered_by

    return mark


def routes_of(resources: Iterable[type]) -> tuple[Route, ...]:
    """Return all routes that the methods of these classes answer, in their order."""
    methods = [method for resource in resources for method in vars(resource).values()]
    return tuple(getattr(method, _ROUTE) for method in methods if hasattr(method, _ROUTE))


def _route_of(method: str, path: str, answered_by: Callable[..., object]) -> Route:
    hints = get_type_hints(answered_by, include_extras=True)
    parameters = inspect.signature(answered_by).parameters
    fields = {
        name: (hints[name], ... if each.default is each.empty else each.default)
        for name, each in parameters.items()
        if name not in ("self", "who", "key")
    }
    in_path = {name: fields.pop(name) for name in PLACE.findall(path) if name in fields}
    if "key" in parameters:
        in_path |= _KEY
    name = "".join(map(str.title, answered_by.__name__.split("_")))
    body: type[BaseModel] | type[Lines] | None = None
    filters: dict[str, type[BaseModel]] = {}
    if "lines" in fields:
        body = Lines
    elif method in ("POST", "PUT"):
        body = _model(f"{name}Body", fields)
    else:
        filters = {each: kind for each, (kind, _) in fields.items() if _is_filter(kind)}
        in_path |= _taken_apart(fields)
    return Route(
        method,
        path,
        answered_by.__name__,
        (inspect.getdoc(answered_by) or "").partition("\n")[0],
        _model(f"{name}Params", in_path),
        body,
        _answer(hints["return"]),
        "who" in parameters,
        filters,
    )


def _model(name: str, fields: Mapping[str, Any]) -> type[BaseModel]:
    model: type[BaseModel] = create_model(name, __config__=_STRICT, **fields)
    return model


def _is_filter(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def _taken_apart(fields: Mapping[str, tuple[Any, Any]]) -> dict[str, tuple[Any, Any]]:
    """Return the fields of filters instead of the filters; no lists: a query has single values."""
    found: dict[str, tuple[Any, Any]] = {}
    for name, (kind, default) in fields.items():
        if not _is_filter(kind):
            found[name] = (kind, default)
            continue
        for part, about in kind.model_fields.items():
            if get_origin(about.annotation) is not tuple:
                found[part] = (about.annotation, about)
    return found


def _answer(kind: Any) -> Any:  # noqa: ANN401 - a type, as pydantic takes it
    if kind is type(None):
        return None
    if get_origin(kind) is AsyncIterator:
        return Lines
    return Items[get_args(kind)[0]] if get_origin(kind) is list else kind  # type: ignore[misc]
