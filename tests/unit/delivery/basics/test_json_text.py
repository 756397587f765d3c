"""Values from outside are written unchanged, however deep, and without harm to memory."""

import json
import signal
import subprocess
import sys
import tracemalloc
from typing import Any

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.delivery.basics.json_text import is_deeper, part, to_json

LONG = -1.2345678901234567e-300
# Runs in a separate process, which ends if its memory is harmed.
WRITER = """
import itertools
from {module} import {name} as write

def around(value, kind, scalar, tail):
    if kind == "array":
        return [value, *[scalar] * tail]
    return {{"": value, **{{str(number): scalar for number in range(tail)}}}}

for scalar, tail in itertools.product(({long!r}, -(2**63), None), (0, 1, 9, 17)):
    for kinds in {kinds!r}:
        value = scalar
        for number in range({levels}):
            value = around(value, kinds[number % len(kinds)], scalar, tail)
        for pad in range(0, 2100, {step}):
            write({{"items": [{{"": "x" * pad, "data": value}}]}})
"""
KINDS = [["array"], ["object"], ["array", "object"], ["object"] * 3 + ["array"] * 9]


def write_watched(writer: str, levels: int, step: int = 3) -> int:
    """The exit code of a process that writes such values, each at many places of its memory."""
    module, _, name = writer.rpartition(".")
    program = WRITER.format(
        module=module, name=name, long=LONG, levels=levels, kinds=KINDS, step=step
    )
    return subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONMALLOC": "debug", "PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        timeout=60,
    ).returncode


@pytest.mark.slow
def test_orjson_writes_shallow_values_without_harm_to_memory() -> None:
    """A value of three levels with two around it, as many as parts of other values have."""
    assert write_watched("orjson.dumps", 3) == 0


@pytest.mark.slow
def test_values_that_crash_orjson_are_written_without_a_crash() -> None:
    """If orjson no longer crashes, it has been fixed, and can write everything."""
    assert write_watched("orjson.dumps", 12) == -signal.SIGABRT
    assert write_watched("holdfast.delivery.basics.json_text.to_json", 12, step=23) == 0


def nested(arrays: int) -> Any:
    value: Any = LONG
    for _ in range(arrays):
        value = [value, LONG]
    return value


@pytest.mark.parametrize("arrays", [9, 10, 16, 100, 254, 255, 500])
def test_deeply_nested_arrays_are_written(arrays: int) -> None:
    value = nested(arrays)
    assert json.loads(to_json(value)) == value


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner),
)


@pytest.mark.slow
@given(value=VALUES, around=st.integers(0, 40))
@example(value=["é", "\u2028", 0], around=40)
def test_any_value_is_written_unchanged_at_any_depth(value: Any, around: int) -> None:
    for _ in range(around):
        value = [value, 1]
    assert json.loads(to_json(value)) == value


def depth(value: Any) -> int:
    """How many arrays and objects are within each other."""
    if not isinstance(value, (list, dict)):
        return 0
    inner = value.values() if isinstance(value, dict) else value
    return 1 + max(map(depth, inner), default=0)


@pytest.mark.slow
@given(value=VALUES, levels=st.integers(0, 6))
def test_is_deeper_compares_the_levels_of_arrays_and_objects(value: Any, levels: int) -> None:
    assert is_deeper(value, levels) is (depth(value) > levels)


@pytest.mark.slow
@given(value=VALUES)
def test_a_part_of_another_value_is_written_unchanged(value: Any) -> None:
    assert json.loads(orjson.dumps({"a": [part(value)]})) == {"a": [value]}


@pytest.mark.parametrize("integer", [2**64, -(2**63) - 1, 10**300])
def test_an_integer_beyond_64_bits_is_read_as_its_double(integer: int) -> None:
    assert orjson.loads(to_json({"a": [integer]})) == {"a": [float(integer)]}


@pytest.mark.parametrize("value", [10**400, "cut \ud83d", {"\udc00": 1}])
def test_an_integer_beyond_doubles_and_a_lone_surrogate_are_refused(value: Any) -> None:
    with pytest.raises(ValueError):
        to_json([value])


def test_a_nan_deep_in_a_value_is_refused() -> None:
    with pytest.raises(ValueError):
        to_json([[[[[[float("nan")]]]]]])


@pytest.mark.parametrize("size", [1, 900, 3000, 20_000])
def test_a_written_text_takes_hardly_more_memory_than_its_bytes(size: int) -> None:
    value = {"channel": "/a", "data": "x" * size}
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    written = [to_json(value) for _ in range(100)]
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (after - before) / len(written) < len(written[0]) + 100
