"""Settings that need a single worker are named, with the channels that they are about."""

from holdfast.compose.single_worker import refused_with_shards
from holdfast.settings import read


def refused(**rule: object) -> list[str]:
    return refused_with_shards(read(None, {"channels": {"/a/**": rule}}))


def test_a_rule_that_needs_a_single_worker_is_named() -> None:
    [why] = refused(work_queue=True)
    assert why.startswith('channels."/a/**": work_queue ')


def test_other_rules_are_fine() -> None:
    assert refused(history=5, presence=True, topic=True) == []
    assert refused(durable=True, lazy=True, attempts=3, guard=True, dead_letters=False) == []


def test_messages_may_create_sessions_at_any_worker() -> None:
    assert refused_with_shards(read(None, {"ptp_create_session": True})) == []
