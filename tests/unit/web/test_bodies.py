"""Several `message` parameters are one array."""

import orjson
import pytest

from app.bayeux.errors import BayeuxError, RequestRefused
from app.web.bodies import concatenate


@pytest.mark.parametrize(
    ("texts", "messages"),
    [
        (['{"a":1}'], {"a": 1}),
        (['[{"a":1}]'], [{"a": 1}]),
        (['{"a":1}', '{"b":2}'], [{"a": 1}, {"b": 2}]),
        (['[{"a":1},{"b":2}]', '{"c":3}', ' [{"d":4}] '], [{"a": 1}, {"b": 2}, {"c": 3}, {"d": 4}]),
    ],
)
def test_objects_and_arrays_become_one(texts: list[str], messages: object) -> None:
    assert orjson.loads(concatenate(texts)) == messages


@pytest.mark.parametrize("texts", [["[]", "[]"], ["", ""], ["{}", "x"], ["[", "]"], ["{}", "[]"]])
def test_parts_that_are_wrong_do_not_become_right(texts: list[str]) -> None:
    with pytest.raises(orjson.JSONDecodeError):
        orjson.loads(concatenate(texts))


def test_no_message_at_all_is_malformed() -> None:
    with pytest.raises(RequestRefused) as refused:
        concatenate([])
    assert refused.value.error is BayeuxError.REQUEST_MALFORMED
