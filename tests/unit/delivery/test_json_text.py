"""What others said is written as they said it, however deep, and within its memory."""

import json
import signal
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.delivery.json_text import is_deeper, is_harmless, to_json

LONG = 1.7976931348623157e308
# In a process of its own: this memory is watched, and harm to it ends the process.
WRITER = """
import itertools
from {module} import {name} as write

for scalar, tail in itertools.product(({long!r}, -(2**63), None), (0, 1, 5, 9, 17)):
    value = []
    for _ in range({arrays} - 1):
        value = [value, *[scalar] * tail]
    for level in range({levels} - {arrays}):
        value = {{"": value}}
    for pad in range(1100):
        write({{"items": [{{"": ["x" * pad, value]}}]}})
"""


def write_watched(writer: str, arrays: int, levels: int) -> int:
    """How a process ends that writes such values, each at many places of its memory."""
    module, _, name = writer.rpartition(".")
    program = WRITER.format(module=module, name=name, long=LONG, arrays=arrays, levels=levels)
    return subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONMALLOC": "debug", "PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        timeout=60,
    ).returncode


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.parametrize(("arrays", "levels"), [(1, 32), (5, 5), (5, 32)])
def test_what_is_harmless_is_written_within_its_memory(arrays: int, levels: int) -> None:
    assert is_harmless(nested(arrays, levels - arrays))
    assert write_watched("orjson.dumps", arrays, levels) == 0


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_what_would_do_harm_is_written_otherwise() -> None:
    """If orjson does none any more, it has been mended, and can write everything."""
    assert write_watched("orjson.dumps", 20, 20) == -signal.SIGABRT
    assert write_watched("app.delivery.json_text.to_json", 20, 20) == 0


def nested(arrays: int, objects: int = 0) -> Any:
    value: Any = LONG
    for _ in range(arrays):
        value = [value, LONG]
    for _ in range(objects):
        value = {"a": value}
    return value


@pytest.mark.parametrize(
    ("arrays", "objects", "is_so"),
    [(5, 0, True), (6, 0, False), (0, 32, True), (0, 33, False), (5, 27, True), (5, 28, False)],
)
def test_what_does_no_harm_has_few_arrays_and_few_levels(
    arrays: int, objects: int, is_so: bool
) -> None:
    assert is_harmless(nested(arrays, objects)) is is_so


@pytest.mark.parametrize("arrays", [9, 10, 16, 100, 254, 255, 500])
def test_many_arrays_are_written_too(arrays: int) -> None:
    value = nested(arrays)
    assert json.loads(to_json(value)) == value


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner),
)


@given(value=VALUES, around=st.integers(0, 40))
@example(value=["é", "\u2028", 0], around=40)
def test_both_ways_to_write_say_the_same(value: Any, around: int) -> None:
    for _ in range(around):
        value = [value, 1]
    assert json.loads(to_json(value)) == value


def depth(value: Any, kinds: tuple[type, ...]) -> int:
    """How many of these kinds are within each other."""
    if not isinstance(value, (list, dict)):
        return 0
    inner = value.values() if isinstance(value, dict) else value
    return isinstance(value, kinds) + max((depth(each, kinds) for each in inner), default=0)


@given(value=VALUES, levels=st.integers(0, 6), arrays=st.integers(0, 6))
def test_deeper_is_what_has_more_within_each_other(value: Any, levels: int, arrays: int) -> None:
    is_so = depth(value, (list, dict)) > levels or depth(value, (list,)) > arrays
    assert is_deeper(value, levels, arrays) is is_so
