"""Values of reports as people write them."""

from datetime import UTC, datetime

import pytest

from holdfast.pipeline.reports.catalogue import result_of
from holdfast.pipeline.reports.columns import COLUMNS
from holdfast.pipeline.reports.forms import written
from holdfast.pipeline.reports.tables import Answer
from holdfast.units import Form

TIME = "2025-11-20T10:05:07.250Z"


@pytest.mark.parametrize(
    ("form", "value", "text"),
    [
        (Form.DAY, TIME, "2025-11-20"),
        (Form.HOUR, TIME, "2025-11-20 10:05 UTC"),
        (Form.TIME, TIME, "2025-11-20 10:05:07 UTC"),
        (Form.COUNT, 1234567, "1,234,567"),
        (Form.MS, 12.5, "12.5 ms"),
        (Form.MS, 30_200, "30.2 s"),
        (Form.SHARE, 0.9412, "94.1 %"),
        (Form.SHARE, 2, "200 %"),
        (Form.BYTES, 512, "512 B"),
        (Form.BYTES, 3 * 1024**2 + 400_000, "3.4 MiB"),
        (Form.CHANNEL, "/orders", "/orders"),
        (Form.COUNT, None, ""),
        (Form.TIME, None, ""),
    ],
)
def test_a_value_is_written_by_its_form(form: Form, value: object, text: str) -> None:
    assert written(value, form) == text


def test_a_message_has_the_id_that_commands_take_and_that_events_have() -> None:
    answer = Answer(["msg", "origin", "dead"], [(1763632840000000000, "n1", 3)])
    assert result_of(answer) == (["message", "dead"], [["n1-1763632840000000000", 3]])
    findings = Answer(["kind", "node", "msg"], [("frame.gap", "n1", None), ("twice", "n2", 17)])
    assert result_of(findings) == (
        ["kind", "node", "message"],
        [["frame.gap", "n1", None], ["twice", "n2", "n2-0000000000000000017"]],
    )


def test_times_of_a_result_are_complete() -> None:
    time = datetime(2025, 11, 20, 10, 5, 7, 250_000, tzinfo=UTC)
    assert result_of(Answer(["first"], [(time,)])).rows == [[TIME]]


def test_every_meaning_is_a_sentence() -> None:
    for table, columns in COLUMNS.items():
        for column in columns:
            assert column.meaning.endswith("."), (table, column.name)
            assert column.meaning[0].isupper(), (table, column.name)
