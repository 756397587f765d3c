"""What operators list and cancel: each row of the table has its routes, columns and commands."""

from typing import Any, get_args

import pytest

from holdfast.cli.main import load
from holdfast.web.admin.listed import LISTED, Listed
from holdfast.web.admin.resources import ROUTES
from holdfast.web.admin.route import Route


def routes_of(listed: Listed) -> dict[str, Route]:
    return {each.method: each for each in ROUTES if each.path == f"/{listed.name}"}


@pytest.mark.parametrize("listed", LISTED, ids=lambda each: each.name)
def test_each_can_be_listed_and_cancelled_by_requests_and_commands(listed: Listed) -> None:
    routes = routes_of(listed)
    assert routes.keys() == {"GET", "DELETE"}
    assert routes["GET"].params.model_fields.keys() - {"sort"} == {"cursor", "limit"}
    assert routes["DELETE"].params.model_fields.keys() == {"id"}
    command: Any = load(listed.name)
    assert command.commands.keys() == {"list", "cancel"}


@pytest.mark.parametrize("listed", LISTED, ids=lambda each: each.name)
def test_each_column_is_a_field_of_the_messages(listed: Listed) -> None:
    [message] = get_args(routes_of(listed)["GET"].answer)
    assert {*listed.columns, "channel", "data", "is_cut"} <= message.__dataclass_fields__.keys()
