"""Settings from the environment: `HOLDFAST_PORT` is the setting `port`."""

import os
import re
from collections.abc import Mapping
from typing import Any, get_origin

import orjson
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
            from holdfast.settings.suggestion import did_you_mean

            meant = did_you_mean(variable, {_PREFIX + each.upper() for each in fields})
            raise ValueError(f"{name}: this setting does not exist{meant}")
        # Kubernetes sets a port to a URL, too.
        if field != "port" or not _LINK.match(value):
            found[field] = _read(field, value, get_origin(fields[field].annotation))
    return found


def _read(field: str, value: str, kind: object) -> Any:  # noqa: ANN401 - any JSON
    """Return the value of a variable, which is JSON for lists and tables."""
    if kind not in (list, dict):
        return value
    try:
        return orjson.loads(value)
    except orjson.JSONDecodeError:
        form = f": write {LIST}" if kind is list else ""
        raise ValueError(f"{field}: {_PREFIX}{field.upper()} must be JSON{form}") from None
