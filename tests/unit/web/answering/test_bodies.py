"""The text of a body: in whatever charset, in one or several parameters."""

import encodings

import orjson
import pytest

from holdfast.bayeux.wire.errors import ErrorReply, RequestRefused
from holdfast.web.answering.bodies import concatenate, to_utf8


@pytest.mark.parametrize(
    ("texts", "messages"),
    [
        (['{"a":1}'], {"a": 1}),
        (['[{"a":1}]'], [{"a": 1}]),
        (['{"a":1}', '{"b":2}'], [{"a": 1}, {"b": 2}]),
        (['[{"a":1},{"b":2}]', '{"c":3}', ' [{"d":4}] '], [{"a": 1}, {"b": 2}, {"c": 3}, {"d": 4}]),
    ],
)
def test_objects_and_arrays_are_joined_into_one_array(texts: list[str], messages: object) -> None:
    assert orjson.loads(concatenate(texts)) == messages


@pytest.mark.parametrize("texts", [["[]", "[]"], ["", ""], ["{}", "x"], ["[", "]"], ["{}", "[]"]])
def test_joining_does_not_repair_malformed_parts(texts: list[str]) -> None:
    with pytest.raises(orjson.JSONDecodeError):
        orjson.loads(concatenate(texts))


def test_an_empty_list_of_texts_is_malformed() -> None:
    with pytest.raises(RequestRefused) as refused:
        concatenate([])
    assert refused.value.error is ErrorReply.REQUEST_MALFORMED


@pytest.mark.parametrize(
    "charset", ["ISO-8859-1", "latin1", "l1", "windows-1252", "cp1252", "iso_8859-15", "us-ascii"]
)
def test_usual_names_of_charsets_are_known(charset: str) -> None:
    assert to_utf8(b"[]", charset) == b"[]"


@pytest.mark.parametrize("charset", ["iso-8859-12", "utf-7", "base64", "idna", "", "../x", "\x00"])
def test_other_charsets_are_refused(charset: str) -> None:
    with pytest.raises(RequestRefused) as refused:
        to_utf8(b"[]", charset)
    assert refused.value.error is ErrorReply.MEDIA_TYPE_UNSUPPORTED


def test_unknown_charsets_are_not_cached() -> None:
    """Python itself caches each name that it is asked for."""
    remembered: dict[str, object] = vars(encodings)["_cache"]
    before = len(remembered)
    for number in range(1000):
        with pytest.raises(RequestRefused):
            to_utf8(b"[]", f"klingon-{number}")
    assert len(remembered) == before
