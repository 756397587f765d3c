"""A store that refuses messages: logged at once, then once a minute with their number."""

import pytest

from holdfast.store.links.reply_errors import StoreRefused
from holdfast.store.links.write_refusals import WriteRefusals


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_refusals_are_logged_at_once_and_then_once_a_minute(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = Clock()
    refusing = WriteRefusals(clock)
    for _ in range(120):
        refusing.hear(StoreRefused("OOM"), 10)
        clock.now += 1.0
    assert caplog.messages == [
        "the store accepts no messages and has refused 10: OOM",
        "the store accepts no messages and has refused 600: OOM",
    ]


def test_the_end_of_refusals_is_logged_with_the_number_not_logged_before(
    caplog: pytest.LogCaptureFixture,
) -> None:
    refusing = WriteRefusals(Clock())
    refusing.hear(b"carried out", 1)
    assert caplog.messages == []
    refusing.hear(StoreRefused("OOM"), 0)
    refusing.hear(StoreRefused("OOM"), 3)
    assert refusing.reason == "OOM"
    refusing.hear(b"carried out", 1)
    assert refusing.reason == ""
    assert caplog.messages[-1] == "the store accepts messages again; it had refused 3 more"
