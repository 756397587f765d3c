"""The rule of the most specific pattern applies, and says what becomes of messages."""

import pytest

from holdfast.bayeux.state.channel_rules import ChannelRules
from holdfast.delivery.basics.channels import Channels
from holdfast.settings import ChannelSettings, Settings

RULES = {
    "/a/**": ChannelSettings(history=10, durable=True),
    "/a/brief/*": ChannelSettings(history=10),
    "/b/**": ChannelSettings(history=10),
    "/b/kept": ChannelSettings(history=10, durable=True),
}


def rules(channels: dict[str, ChannelSettings]) -> ChannelRules:
    return ChannelRules(Channels(), Settings(channels=channels))


@pytest.mark.parametrize(
    ("name", "is_so"),
    [
        *(("/a/x", True), ("/a/x/**", True), ("/a/*", True), ("/a/brief/x", False)),
        *(("/a/**", False), ("/a/brief/*", False), ("/b/kept", True), ("/b/x", False)),
        *(("/b/*", False), ("/c", False), ("/**", False), ("no channel", False)),
    ],
)
def test_the_store_has_all_messages_only_where_every_rule_says_so(name: str, is_so: bool) -> None:
    assert rules(RULES).stores_all(name) is is_so


def test_the_fingerprint_differs_if_a_killed_process_loses_other_messages() -> None:
    same = dict(reversed(RULES.items())) | {"/a/**": ChannelSettings(history=20, durable=True)}
    assert rules(same).fingerprint() == rules(RULES).fingerprint()
    others = [RULES | {"/b/**": RULES["/a/**"]}, {"/a/**": RULES["/a/**"]}]
    prints = {rules(each).fingerprint() for each in (RULES, *others)}
    assert len(prints) == len(others) + 1
