"""A host says which others have other settings, once for each change."""

from dataclasses import replace

import pytest

from holdfast.compose.agreeing import Agreeing
from holdfast.distribution import release
from holdfast.hosts.rows import HostRow
from holdfast.settings import Settings


def test_hosts_with_other_settings_are_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    here = Agreeing(Settings())
    same = HostRow("x", 1, digest=here.digest(), release=release())
    other, later = replace(same, digest="another"), replace(same, digest="later", release="9.9")
    rows = {"a": same, "b": replace(same, digest=""), "c": other, "d": later}
    here.compare(rows, ["a", "b", "d"])
    assert not caplog.messages
    for _ in range(2):
        here.compare({"a": same, "c": other}, ["a", "c"])
    [said] = caplog.messages
    assert "differ from those of c:" in said
    here.compare({"a": same, "c": same}, ["a", "c"])
    here.compare({"a": same, "c": other}, ["a", "c"])
    assert len(caplog.messages) == 2
