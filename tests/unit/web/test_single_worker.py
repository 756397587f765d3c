"""Settings that need a single worker are named, with the channels that they are about."""

import pytest

from holdfast.compose.single_worker import refused_with_shards
from holdfast.settings import read


def refused(**rule: object) -> list[str]:
    return refused_with_shards(read(None, {"channels": {"/a/**": rule}}))


@pytest.mark.parametrize("option", ["work_queue", "topic"])
def test_a_rule_that_needs_a_single_worker_is_named(option: str) -> None:
    [why] = refused(**{option: True})
    assert why.startswith(f'channels."/a/**": {option} ')


def test_all_reasons_are_given_at_once() -> None:
    assert len(refused(topic=True, work_queue=True)) == 2


def test_other_rules_are_fine() -> None:
    assert refused(history=5, presence=True) == []
    assert refused(durable=True, lazy=True, attempts=3, guard=True, dead_letters=False) == []


def test_messages_may_create_sessions_at_any_worker() -> None:
    assert refused_with_shards(read(None, {"ptp_create_session": True})) == []
