"""Alerts are raised once and cleared once, whatever their values do in between."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.compose.alerts import ReadAgain, alert_limits
from holdfast.compose.cannot_start import CannotStart
from holdfast.delivery.basics.counters import Counters
from holdfast.settings import read
from holdfast.web.admin.alert_limits import Alert, AlertLimits
from holdfast.web.admin.alerts import Alerts, Measured
from holdfast.web.admin.count_window import CountWindow
from holdfast.web.admin.measurements import of_audit, of_files, of_letters, of_refused

LIMITS = AlertLimits(letters=10, clear_after=60_000)


class Judge:
    """Judges one value every ten seconds."""

    def __init__(self) -> None:
        self.alerts = Alerts()
        self.now = 0.0

    def see(self, value: float, limits: AlertLimits = LIMITS) -> str:
        self.now += 10
        measured = Measured(value, f"{value} letters", "look")
        changed = self.alerts.judge(Alert.LETTERS, measured, limits, self.now, int(self.now * 1000))
        if changed is None:
            return ""
        return "raised" if self.alerts.is_raised(Alert.LETTERS) else "cleared"


def test_an_alert_is_raised_once_and_cleared_once_after_its_value_was_low_for_a_while() -> None:
    judge = Judge()
    assert [judge.see(value) for value in (9, 10, 12, 10)] == ["", "raised", "", ""]
    assert [judge.see(0) for _ in range(8)] == ["", "", "", "", "", "", "cleared", ""]
    assert judge.alerts.times[Alert.LETTERS] == 1


def test_an_alert_says_since_when_and_what_was_measured_last() -> None:
    judge = Judge()
    judge.see(10)
    judge.see(14)
    [raised] = judge.alerts.raised()
    assert (raised.since, raised.reason, raised.next) == (10_000, "14 letters", "look")


def test_a_value_a_little_below_the_limit_clears_nothing() -> None:
    judge = Judge()
    assert judge.see(10) == "raised"
    assert {judge.see(9) for _ in range(100)} == {""}


def test_a_limit_of_zero_switches_an_alert_off_and_clears_it_at_once() -> None:
    judge = Judge()
    off = AlertLimits(letters=0)
    assert judge.see(1000, off) == ""
    assert judge.see(1000) == "raised"
    assert judge.see(1000, off) == "cleared"


@given(st.lists(st.integers(0, 20), max_size=60))
def test_whatever_its_value_does_an_alert_is_raised_and_cleared_in_turn_and_not_often(
    values: list[int],
) -> None:
    judge = Judge()
    seen = [(judge.see(value), judge.now) for value in values]
    changes = [(what, at) for what, at in seen if what]
    turns = ["raised", "cleared"] * len(changes)
    assert [what for what, _ in changes] == turns[: len(changes)]
    lives = zip(changes[::2], changes[1::2], strict=False)
    assert all(cleared - raised >= 60 for (_, raised), (_, cleared) in lives)


def test_letters_are_counted_within_a_minute() -> None:
    counters = Counters()
    window = CountWindow(counters, 0.0)
    for n in range(1, 31):
        counters.dead += 10
        window.note(n * 10.0)
    assert of_letters(window).value == 60
    window.note(350.0)
    window.note(420.0)
    assert of_letters(window).value == 0


def test_slow_looks_do_not_make_more_letters_a_minute() -> None:
    counters = Counters()
    window = CountWindow(counters, 0.0)
    counters.dead = 100
    window.note(600.0)
    assert of_letters(window).value == 10


def test_the_share_of_refusals_needs_a_number_of_them() -> None:
    counters = Counters()
    window = CountWindow(counters, 0.0)
    counters.refused["user"], counters.acked = 19, 1
    window.note(10.0)
    assert of_refused(window, 20).value == 0
    counters.refused["user"], counters.acked = 25, 75
    window.note(20.0)
    found = of_refused(window, 20)
    assert found.value == 0.25
    assert found.reason == "25% of 100 messages were refused within five minutes"


def test_failures_that_nobody_refused_with_are_no_refusals() -> None:
    counters = Counters()
    window = CountWindow(counters, 0.0)
    counters.refused["communication"] = 100
    window.note(10.0)
    assert of_refused(window, 1).value == 0


def test_an_audit_with_violations_names_their_kinds() -> None:
    rows = [{"kind": "never_handed", "number": 2}, {"kind": "frame.gap", "number": 1}]
    found = of_audit({"at": 0, "rows": rows}, 0)
    assert found.value == 3
    assert found.reason.endswith(" found 3 violations: frame.gap, never_handed")
    assert of_audit(None, 0).value == 0
    assert of_audit({"at": 0, "rows": []}, 0).value == 0


def test_without_a_file_the_defaults_are_in_force() -> None:
    assert alert_limits(read(None, {}), ReadAgain())() == AlertLimits()


def test_a_file_is_read_again_when_it_has_changed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "alerts.toml"
    file.write_text("letters = 5\n")
    read_again = ReadAgain()
    limits = alert_limits(read(None, {"alerts": file}), read_again)
    assert limits() == AlertLimits(letters=5)
    file.write_text("letters = 7\noldest = 1000\n")
    assert limits() == AlertLimits(letters=7, oldest=1000)
    file.write_text("oldest = 1000\nleters = 8\n")
    assert limits() == AlertLimits(letters=7, oldest=1000)
    fault = f"{file}: line 2: leters: there is no such key: did you mean letters?"
    assert read_again.faults() == [fault]
    # One error, however often the file is looked at.
    assert limits() == AlertLimits(letters=7, oldest=1000)
    [logged] = [each.message for each in caplog.records if each.levelname == "ERROR"]
    end = "; correct it: until then, what was read before stays in force"
    assert logged == fault + end
    file.write_text("letters = 8\n")
    assert limits() == AlertLimits(letters=8)
    assert read_again.faults() == []


def test_files_that_cannot_be_used_are_alerted_to_until_they_can() -> None:
    alerts = Alerts()
    found: list[list[str]] = []
    for faults in ([], ["rights.toml: line 3: a", "users: b"], ["users: b"], []):
        alerts.judge(Alert.FILES, of_files(faults), AlertLimits(), len(found), 0)
        found.append([each.reason for each in alerts.raised()])
    start = "what was read before stays in force: "
    assert found == [[], [f"{start}rights.toml: line 3: a; users: b"], [f"{start}users: b"], []]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("mails = 5", "line 1: mails: there is no such key"),
        ("refused = 20", "line 1: refused: Input should be less than or equal to 1"),
        ("letters =", "not TOML: "),
    ],
)
def test_a_wrong_file_is_named_at_the_start(tmp_path: Path, text: str, fault: str) -> None:
    file = tmp_path / "alerts.toml"
    file.write_text(text)
    with pytest.raises(CannotStart) as caught:
        alert_limits(read(None, {"alerts": file}), ReadAgain())
    assert str(caught.value).startswith(f"alerts: {file}: {fault}")
