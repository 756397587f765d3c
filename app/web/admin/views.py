"""Pages and lists of views.

A view is what the administration shows of something: the answer in JSON, and the source of its
schema. Times are milliseconds since 1970, sizes bytes. An unknown value is null, never omitted.
"""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from heapq import nsmallest
from typing import Annotated, Any, Generic, TypeVar

from pydantic import Field

from holdfast.store.format.operator_input import values_of
from holdfast.units import Form

Item = TypeVar("Item")
View = TypeVar("View")


@dataclass(frozen=True, slots=True)
class Page(Generic[Item]):
    """A part of a long list."""

    items: list[Item]
    cursor: Annotated[str | None, Field(description="Asks for the next part; null at the end.")]


@dataclass(frozen=True, slots=True)
class Items(Generic[Item]):
    """A whole list."""

    items: list[Item]


@dataclass(frozen=True, slots=True)
class TableColumn:
    """One column of a table."""

    name: str
    form: Annotated[Form, values_of(Form), Field(description="How people write its values.")]
    meaning: str


def first_names(
    names: Iterable[str], after: str | None, limit: int
) -> tuple[list[str], str | None]:
    """Return the first names after this one; if there are more, also the cursor to continue."""
    found = nsmallest(limit + 1, (name for name in names if name > (after or "")))
    return found[:limit], found[limit - 1] if len(found) > limit else None


def view_of(kind: type[View], *sources: object, **others: Any) -> View:  # noqa: ANN401 - any field
    """Return a view of something.

    A field that the others do not name is the attribute of this name of the first source with one.
    """
    names = [each.name for each in fields(kind) if each.name not in others]  # type: ignore[arg-type]
    found = {
        name: getattr(next(each for each in sources if hasattr(each, name)), name) for name in names
    }
    return kind(**found, **others)
