"""The messages in a request's bytes, as Python's own JSON module reads them."""

import json
import math
from typing import Any, NoReturn

from holdfast.bayeux.wire.errors import ErrorReply


class Object(dict[str, Any]):
    """An object that also knows its pairs, including those with repeated names."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.pairs = pairs


def in_doubles(value: Any) -> Any:
    """The value with doubles for integers beyond 64 bits."""
    if isinstance(value, list):
        return [in_doubles(each) for each in value]
    if isinstance(value, dict):
        return {key: in_doubles(each) for key, each in value.items()}
    is_huge = type(value) is int and not -(2**63) <= value < 2**64
    return float(value) if is_huge else value


def faults_of(value: Any) -> list[ErrorReply]:
    """Why a message with this value in it is refused, if it is."""
    if isinstance(value, Object):
        return faults_of(value.pairs)
    if isinstance(value, (list, tuple)):
        return [fault for each in value for fault in faults_of(each)]
    if isinstance(value, str) and any("\ud800" <= character <= "\udfff" for character in value):
        return [ErrorReply.TEXT_INVALID]
    if isinstance(value, int) and abs(value) >= 2**1024 - 2**970:
        return [ErrorReply.NUMBER_INVALID]
    if isinstance(value, float) and math.isinf(value):
        return [ErrorReply.NUMBER_INVALID]
    return []


def messages_in(body: bytes) -> list[Object] | None:
    """The messages of a request, or None if it has none."""
    try:
        value = json.loads(body.decode(), parse_constant=_refuse, object_pairs_hook=Object)
    except ValueError:
        return None
    messages = value if isinstance(value, list) else [value]
    are_objects = all(isinstance(each, dict) for each in messages)
    return messages if messages and are_objects else None


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)
