"""Settings from the environment: `HOLDFAST_PORT` is the setting `port`."""

import os
import re
from collections.abc import Mapping
from typing import Any, get_args, get_origin

import orjson
from pydantic import BaseModel
from pydantic.fields import FieldInfo

# How lists are written.
LIST = '["…"]'
_PREFIX = "HOLDFAST_"
# The form of variables that Kubernetes sets for a Service named `holdfast`.
_LINK = re.compile(r"(?:tcp|udp|sctp)://")
_LINKS = re.compile(
    r"HOLDFAST_(?:SERVICE_HOST|SERVICE_PORT(?:_.+)?|PORT_\d+_(?:TCP|UDP|SCTP)(?:_.+)?)"
)
# Variables of the commands that talk to a running server.
OF_THE_COMMAND_LINE = frozenset(
    {"HOLDFAST_CLIENT_URL", "HOLDFAST_PASSWORD", "HOLDFAST_TOKEN_FILE", "HOLDFAST_URL"}
)


def given_by_environment(fields: Mapping[str, FieldInfo]) -> dict[str, Any]:
    """Return the settings that variables give; raises `ValueError` for a wrong name, or no JSON."""
    found: dict[str, Any] = {}
    for name, value in os.environ.items():
        variable = name.upper()
        is_ours = variable.startswith(_PREFIX) and not _LINKS.fullmatch(variable)
        if not is_ours or variable in OF_THE_COMMAND_LINE:
            continue
        field = variable.removeprefix(_PREFIX).lower()
        if field not in fields:
            from holdfast.settings.suggestion import did_you_mean, in_table

            meant = did_you_mean(variable, {_PREFIX + each.upper() for each in fields})
            other = in_table(field, fields) or meant
            raise ValueError(f"{name}: this setting does not exist{other}")
        # Kubernetes sets a port to a URL, too.
        if field != "port" or not _LINK.match(value):
            found[field] = _read(field, value, _kind_of(fields[field].annotation))
    return found


def _kind_of(annotation: Any) -> object:  # noqa: ANN401 - whatever is a type
    """Return the type of the values of a setting: `dict` for every kind of table."""
    kinds = [kind for kind in get_args(annotation) if isinstance(kind, type)]
    is_table = any(issubclass(kind, BaseModel) for kind in kinds)
    return dict if is_table else get_origin(annotation)


def _read(field: str, value: str, kind: object) -> Any:  # noqa: ANN401 - any JSON
    """Return the value of a variable, which is JSON for lists and tables."""
    if kind not in (list, dict):
        return value
    try:
        return orjson.loads(value)
    except orjson.JSONDecodeError:
        form = f": write {LIST}" if kind is list else ""
        raise ValueError(f"{field}: {_PREFIX}{field.upper()} must be JSON{form}") from None
