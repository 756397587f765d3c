"""A host says which others have other settings, once for each change."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from holdfast.compose.agreeing import FIXED, Agreeing
from holdfast.distribution import release
from holdfast.hosts.fixed_settings import LINKS
from holdfast.hosts.rows import HostRow
from holdfast.settings import ChannelSettings, Settings
from holdfast.web.forwarding.hello import FORM, HIGHEST


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


@pytest.mark.parametrize(
    ("setting", "changed"),
    [
        ("shards", {"shards": 7, "workers": 7}),
        ("channels", {"channels": {"/a": {"history": 3}}}),
        ("login", {"login_passwords": "users"}),
        ("login, rights", {"rights": "rights.json", "login_passwords": "users"}),
    ],
)
def test_a_host_gets_no_shard_with_settings_that_all_others_have_otherwise(
    setting: str, changed: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    there = Agreeing(Settings()).fixed
    rows = {host: HostRow("x", 1, fixed=there) for host in ("b", "c")}
    here = Agreeing(Settings(**changed))
    for _ in range(2):
        here.refuse(rows, ["b", "c"])
    assert here.refused == setting.split(", ")
    [said] = caplog.messages
    assert f"from those of all hosts with shards: {setting}. Make them equal" in said
    # No host with shards agrees otherwise.
    for holders in ([], ["d"]):
        here.refuse(rows, holders)
        assert here.refused == []
    here.refuse({**rows, "c": HostRow("x", 1, fixed=here.fixed)}, ["b", "c"])
    assert here.refused == []


def test_of_each_fixed_setting_a_test_knows_what_changes_it() -> None:
    assert {*FIXED} == {"shards", "channels", "login", "rights", LINKS}


@pytest.mark.parametrize(
    ("theirs", "is_refused"),
    [
        (["1-1"], False),
        (["1-3", "1-1"], False),
        (["2-3"], True),
        # It must reach each of them.
        (["1-2", "2-2"], True),
        (["something"], False),
    ],
)
def test_a_host_gets_no_shard_if_its_links_have_no_form_in_common_with_those_of_others(
    theirs: list[str], is_refused: bool, caplog: pytest.LogCaptureFixture
) -> None:
    here = Agreeing(Settings())
    assert f"{LINKS}={FORM}-{HIGHEST}" in here.fixed.split()
    rows = {
        f"host{n}": HostRow("x", 1, fixed=f"{LINKS}={forms}", release=f"{n + 8}.0")
        for n, forms in enumerate(theirs)
    }
    here.refuse(rows, rows.keys())
    assert here.refused == [LINKS] * is_refused
    wanted = f"has no form of links in common with {len(theirs) + 7}.0 on host{len(theirs) - 1}:"
    assert [wanted in each for each in caplog.messages] == [True] * is_refused


def test_hosts_of_several_releases_still_refuse_a_host_without_their_login() -> None:
    there = Agreeing(Settings(login_passwords=Path("users"))).fixed
    rows = {"b": HostRow("x", 1, fixed=there), "c": HostRow("x", 1, fixed=there + " later=1")}
    here = Agreeing(Settings())
    here.refuse(rows, ["b", "c"])
    assert here.refused == ["login"]


def test_settings_that_are_changed_on_one_host_after_the_other_refuse_no_host(
    tmp_path: Path,
) -> None:
    there = Agreeing(Settings(login_passwords=tmp_path / "users"))
    row = HostRow("x", 1, fixed=there.fixed + " later=1")
    changed = Settings(
        login_passwords=tmp_path / "others",
        timeout=20_000,
        channels={"/a/*": ChannelSettings(lazy=True)},
    )
    here = Agreeing(changed)
    assert here.digest() != there.digest()
    here.refuse({"b": row}, ["b"])
    assert here.refused == []
    # A release before this one says nothing.
    here.refuse({"b": HostRow("x", 1)}, ["b"])
    assert here.refused == []
