"""How a process opens a store whose holder is silent, if the store answers late."""

import asyncio
from collections.abc import Sequence
from typing import Any
from unittest.mock import Mock

import pytest

from holdfast.store.format.deployment import Deployment
from holdfast.store.format.keys import RedisKeys
from holdfast.store.links.reply_errors import ScriptFailed
from holdfast.store.links.script import Script
from holdfast.store.opening import write_right
from holdfast.store.opening.asking_to_open import Opening
from holdfast.store.opening.lease import SPEAK_S
from holdfast.store.opening.write_right import WriteRight

# Compiled code takes no other link.
pytestmark = pytest.mark.interpreted

RAISED = "seed-1.nonce000 7"
OPENED = [b"seed-2.nonce001", b"1", b"0", b"", b"", b"deployment", b"00"]


class Waiting:
    """A standby, a store whose holder raises its lease no more, and time that passes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, answers_after_s: float) -> None:
        self.now = 1000.0
        self.opened_at = 0.0
        self._answers_after_s = answers_after_s
        monkeypatch.setattr(write_right, "boot_clock", lambda: lambda: self.now)
        monkeypatch.setattr(asyncio, "sleep", self._sleep)
        link = Mock(script=self._script)
        opening = Opening("node", Deployment("deployment", b"0"), lock="lock", is_standby=True)
        names = ("clock", "on_opened", "on_lost", "on_again", "on_fenced")
        calls: dict[str, Any] = {name: Mock() for name in names}
        self.right = WriteRight(link, RedisKeys("holdfast"), opening=opening, **calls)

    async def _sleep(self, seconds: float) -> None:
        self.now += seconds

    def _script(self, _: Script, __: Sequence[object], args: Sequence[object], done: Any) -> None:
        if RAISED not in args:
            done(ScriptFailed("HELD", f"HELD {RAISED} - other"))
            return
        self.now += self._answers_after_s
        self.opened_at = self.now
        done(OPENED)


@pytest.mark.parametrize(("answers_after_s", "waits_s"), [(0.1, 0.0), (5.0, SPEAK_S)])
async def test_what_a_late_answer_does_not_prove_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, answers_after_s: float, waits_s: float
) -> None:
    waiting = Waiting(monkeypatch, answers_after_s)
    await waiting.right.open()
    assert waiting.right.is_open
    assert waiting.now == waiting.opened_at + waits_s
