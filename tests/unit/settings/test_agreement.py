"""What must be alike on all machines: every setting, but those that belong to one of them."""

from pathlib import Path
from typing import Any

import pytest

from holdfast.settings import Settings
from holdfast.settings.agreement import BY_CONTENT, MAY_DIFFER, agreement

# All others. Whoever adds a setting decides whether machines may have different ones.
ALIKE = [
    "open",
    "paths",
    "allow_origin",
    "request_timeout",
    "publish_timeout",
    "streams",
    "write_timeout",
    "shards",
    "hosts",
    "namespace",
    "deployment",
    "durable",
    "durability",
    "journal",
    "journal_age",
    "journal_size",
    "transports",
    "timeout",
    "interval",
    "max_interval",
    "max_lazy_timeout",
    "meta_connect_deliver_only",
    "handshake_reconnect",
    "allow_message_delivery_during_handshake",
    "broadcast_to_publisher",
    "trust_client_session",
    "max_sessions_per_browser",
    "multi_session_interval",
    "duplicate_meta_connect_http_response_code",
    "channels",
    "delivery",
    "dead_letter_age",
    "dead_letter_count",
    "dead_letter_bytes",
    "dead_letter_share_bytes",
    "guard_window",
    "guard_receivers",
    "guard_messages",
    "guard_retry",
    "ptp_create_session",
    "extension",
    "ack",
    "request",
    "timesync",
    "chat",
    "docs_url",
    "timestamp",
    "max_inactivity",
    "webhooks",
    "login_issuer",
    "login_audience",
    "login_leeway",
    "login_subject_claim",
    "login_groups_claim",
    "login_rights_claim",
    "login_key_host",
    "login_cookie",
    "login_header",
    "login_groups_header",
    "login_certificate",
    "backend",
    "login_anonymous",
    "login_warning",
]
FAMILIES = ("browser_cookie_", "budget_", "callback_", "max_", "quota_", "ws_")
OTHERS = ("reply_timeout", "unconnected_share", "handshake_rate")


def test_of_every_setting_it_is_known_whether_it_must_be_alike() -> None:
    names = {*Settings.model_fields}
    alike = {*ALIKE, *OTHERS, *(each for each in names if each.startswith(FAMILIES))}
    assert not alike & MAY_DIFFER
    assert alike | MAY_DIFFER | {*BY_CONTENT} == names


@pytest.mark.parametrize(
    "changed",
    [{"timeout": 20_000}, {"durability": "memory"}, {"channels": {"/a": {"history": 3}}}],
)
def test_what_must_be_alike_changes_the_digest(changed: dict[str, Any]) -> None:
    assert agreement(Settings(**changed)) != agreement(Settings())


def test_what_belongs_to_a_machine_does_not() -> None:
    assert agreement(Settings(port=9000, log_level="debug", node="b")) == agreement(Settings())


def test_of_files_the_content_counts_and_not_the_name(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    for each in (one, other):
        each.write_text("ann:1\n")
    assert agreement(Settings(login_passwords=one)) == agreement(Settings(login_passwords=other))
    other.write_text("ann:2\n")
    assert agreement(Settings(login_passwords=one)) != agreement(Settings(login_passwords=other))
