"""Every setting can be given in three ways; the nearest one wins; a wrong one is named."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import typer
from pydantic import SecretStr
from typer.testing import CliRunner, Result

from holdfast.cli.flags import ConfigFile, GivenSettings
from holdfast.cli.main import program
from holdfast.cli.program import Program, WithManyOptions
from holdfast.cli.serve import read_settings, telling_failures
from holdfast.cli.value_types import value_type
from holdfast.settings import (
    SECTIONS,
    SET_OFTEN,
    BackendSettings,
    ChannelSettings,
    Settings,
    WebhookSettings,
)
from holdfast.units import unit_of
from tests.serving import as_toml

SECRET = "whsec_" + "c2VjcmV0" * 4


def hook(**changed: object) -> str:
    """The table of one webhook, with these changes."""
    usual = {"url": "https://a.example", "secret": SECRET, "channels": ["/a"]}
    return json.dumps({"a": {**usual, **changed}})


def application(**changed: object) -> str:
    """The table of the backend, with these changes."""
    return json.dumps({"url": "https://a.example", "secret": SECRET, **changed})


HOOK = hook()[len('{"a": ') : -1]

# Each setting with a value that is not its default, and how it reads on the command line.
SAMPLES: dict[str, tuple[Any, list[str]]] = {
    "host": ("127.0.0.2", ["127.0.0.2"]),
    "port": (0, ["0"]),
    "unix": (Path("run/socket"), ["run/socket"]),
    "admin": ("127.0.0.1:9000", ["127.0.0.1:9000"]),
    "open": (True, []),
    "paths": (["/a", "/b/c"], ["/a", "/b/c"]),
    "allow_origin": (["https://a.example", "*"], ["https://a.example", "*"]),
    "trusted_proxies": (["10.0.0.0/8", "unix"], ["10.0.0.0/8", "unix"]),
    "forwarded_header": ("Forwarded", ["Forwarded"]),
    "host_name": (["a.example", "*.b.example"], ["a.example", "*.b.example"]),
    "tls_cert": (Path("cert.pem"), ["cert.pem"]),
    "tls_key": (Path("key.pem"), ["key.pem"]),
    "tls_client_ca": (Path("ca.pem"), ["ca.pem"]),
    "hsts": (86400, ["86400"]),
    "fast_lane": (False, []),
    "restart_timeout": (24, ["24"]),
    "frozen_timeout": (25, ["25"]),
    "silent_timeout": (26, ["26"]),
    "request_timeout": (21, ["21"]),
    "publish_timeout": (21, ["21"]),
    "streams": (False, []),
    "write_timeout": (22, ["22"]),
    "shutdown_timeout": (23, ["23"]),
    "supervisor": (False, ["--no-supervisor"]),
    "workers": (3, ["3"]),
    "shards": (3, ["3"]),
    "own_port": (43, ["43"]),
    "alerts": (Path("alerts.toml"), ["alerts.toml"]),
    "otlp": ("http://127.0.0.1:4318", ["http://127.0.0.1:4318"]),
    "log_level": ("debug", ["debug"]),
    "hosts": (["a.example:8443"], ["a.example:8443"]),
    "own_host": ("a.example", ["a.example"]),
    "capacity": (3, ["3"]),
    "link_cert": (Path("link.pem"), ["link.pem"]),
    "link_key": (Path("link.key"), ["link.key"]),
    "link_ca": (Path("links.pem"), ["links.pem"]),
    "data": (Path("elsewhere"), ["elsewhere"]),
    "redis": ("redis://valkey:6379/1", ["redis://valkey:6379/1"]),
    "standby": (True, ["--standby"]),
    "namespace": ("shop", ["shop"]),
    "node": ("a-1", ["a-1"]),
    "deployment": ("shop", ["shop"]),
    "durable": ("acked", ["acked"]),
    "durability": ("always", ["always"]),
    "journal": (False, ["false"]),
    "journal_age": (5000, ["5000"]),
    "journal_size": (5000, ["5000"]),
    "transports": (["long-polling"], ["long-polling"]),
    "timeout": (1, ["1"]),
    "interval": (2, ["2"]),
    "max_interval": (3, ["3"]),
    "max_lazy_timeout": (4, ["4"]),
    "meta_connect_deliver_only": (True, []),
    "handshake_reconnect": (True, []),
    "allow_message_delivery_during_handshake": (True, []),
    "broadcast_to_publisher": (False, []),
    "trust_client_session": (True, []),
    "max_sessions_per_browser": (-1, ["-1"]),
    "multi_session_interval": (5, ["5"]),
    "duplicate_meta_connect_http_response_code": (500, ["500"]),
    "channels": (
        {"/a/**": ChannelSettings(lazy=True, lazy_timeout=9)},
        ['{"/a/**": {"lazy": true, "lazy_timeout": 9}}'],
    ),
    "delivery": (False, []),
    "dead_letter_age": (5000, ["5000"]),
    "dead_letter_count": (6, ["6"]),
    "dead_letter_bytes": (7, ["7"]),
    "dead_letter_share_bytes": (8, ["8"]),
    "guard_window": (1001, ["1001"]),
    "guard_receivers": (29, ["29"]),
    "guard_messages": (30, ["30"]),
    "guard_retry": (6001, ["6001"]),
    "ptp_create_session": (True, []),
    "extension": (["a.b:c"], ["a.b:c"]),
    "ack": (False, []),
    "request": (False, []),
    "timesync": (False, []),
    "chat": (False, []),
    "docs_url": ("https://docs.example/", ["https://docs.example/"]),
    "timestamp": (True, []),
    "max_inactivity": (6, ["6"]),
    "webhooks": (
        {"a": WebhookSettings(url="https://a.example", secret=SecretStr(SECRET), channels=["/a"])},
        [hook()],
    ),
    "login_keys": ("key.pem", ["key.pem"]),
    "login_issuer": ("https://id.example", ["https://id.example"]),
    "login_audience": (["push", "chat"], ["push", "chat"]),
    "login_leeway": (7, ["7"]),
    "login_subject_claim": ("name", ["name"]),
    "login_groups_claim": ("roles", ["roles"]),
    "login_rights_claim": ("holdfast.rights", ["holdfast.rights"]),
    "login_key_host": (["keys.example"], ["keys.example"]),
    "login_cookie": ("token", ["token"]),
    "login_passwords": (Path("users"), ["users"]),
    "login_header": ("X-User", ["X-User"]),
    "login_groups_header": ("X-Groups", ["X-Groups"]),
    "login_certificate": (True, []),
    "backend": (
        BackendSettings(url="https://a.example", secret=SecretStr(SECRET), cookies=["sessionid"]),
        [application(cookies=["sessionid"])],
    ),
    "login_anonymous": (True, []),
    "login_warning": (7, ["7"]),
    "rights": (Path("rights.toml"), ["rights.toml"]),
    "browser_cookie_name": ("__Host-b", ["__Host-b"]),
    "browser_cookie_domain": ("example.org", ["example.org"]),
    "browser_cookie_path": ("/cometd", ["/cometd"]),
    "browser_cookie_max_age": (7, ["7"]),
    "browser_cookie_secure": (True, []),
    "browser_cookie_http_only": (False, []),
    "browser_cookie_same_site": ("Lax", ["Lax"]),
    "browser_cookie_partitioned": (True, []),
    "callback_parameter": ("call", ["call"]),
    "callback_parameter_max_length": (8, ["8"]),
    "ws_messages_per_frame": (-1, ["-1"]),
    "ws_idle_timeout": (9, ["9"]),
    "ws_session_timeout": (9, ["9"]),
    "ws_require_handshake_per_connection": (True, []),
    "ws_protocol": ("bayeux", ["bayeux"]),
    "max_message_size": (10, ["10"]),
    "max_request_size": (11, ["11"]),
    "max_unfinished_bytes": (28, ["28"]),
    "max_batch": (12, ["12"]),
    "max_depth": (13, ["13"]),
    "max_values": (99, ["99"]),
    "max_subscriptions": (14, ["14"]),
    "max_session_filters": (35, ["35"]),
    "max_topics": (38, ["38"]),
    "max_outstanding": (39, ["39"]),
    "max_total_outstanding": (40, ["40"]),
    "reply_timeout": (41, ["41"]),
    "max_reply_timeout": (4200, ["4200"]),
    "max_filters": (36, ["36"]),
    "max_total_subscriptions": (34, ["34"]),
    "max_queue": (15, ["15"]),
    "max_queue_bytes": (16, ["16"]),
    "max_subject_queue": (35, ["35"]),
    "max_subject_queue_bytes": (36, ["36"]),
    "max_subject_queues": (37, ["37"]),
    "max_history": (39, ["39"]),
    "max_history_bytes": (40, ["40"]),
    "max_readers": (39, ["39"]),
    "max_work_queue": (38, ["38"]),
    "max_work_queue_bytes": (39, ["39"]),
    "max_work_queues": (40, ["40"]),
    "max_delay": (61, ["61"]),
    "max_delayed": (62, ["62"]),
    "max_delayed_bytes": (63, ["63"]),
    "max_publish_keys": (27, ["27"]),
    "max_sessions": (17, ["17"]),
    "max_sessions_per_subject": (29, ["29"]),
    "max_names_per_browser": (30, ["30"]),
    "max_names_per_address": (33, ["33"]),
    "max_session_timeout": (31, ["31"]),
    "unconnected_share": (32, ["32"]),
    "max_channel_length": (180, ["180"]),
    "max_channel_segments": (19, ["19"]),
    "handshake_rate": (20, ["20"]),
    "budget_requests": (31, ["31"]),
    "budget_handshakes": (32, ["32"]),
    "budget_publishes": (33, ["33"]),
    "budget_bytes": (34, ["34"]),
    "budget_letters": (0, ["0"]),
    "quota_sessions": (35, ["35"]),
    "quota_subscriptions": (36, ["36"]),
    "quota_waiting_bytes": (37, ["37"]),
    "quota_addressed": (38, ["38"]),
    "quota_addressed_bytes": (39, ["39"]),
    "quota_history": (41, ["41"]),
    "quota_history_bytes": (42, ["42"]),
    "quota_readers": (43, ["43"]),
    "quota_topics": (40, ["40"]),
}
# Settings without which others would be invalid.
LINKS = ["--link-cert", "link.pem", "--link-key", "link.key", "--link-ca", "ca.pem"]
ON_HOSTS = [*("--shards", "3", "--redis", "redis://valkey"), *LINKS]
COMPANIONS = {
    "hosts": ["--own-host", "a.example", *ON_HOSTS],
    "own_host": ["--hosts", "a.example:8443", *ON_HOSTS],
    "shards": ["--workers", "3"],
    "browser_cookie_name": ["--browser-cookie-secure"],
    "login_audience": ["--login-keys", "key.pem"],
    "login_leeway": ["--login-keys", "key.pem"],
    "login_subject_claim": ["--login-keys", "key.pem"],
    "login_groups_claim": ["--login-keys", "key.pem"],
    "login_cookie": ["--login-keys", "key.pem"],
    "login_warning": ["--login-keys", "key.pem"],
    "login_key_host": ["--login-issuer", "https://id.example"],
    "login_rights_claim": ["--login-issuer", "https://id.example"],
    "login_header": ["--trusted-proxies", "127.0.0.1"],
    "login_groups_header": ["--login-header", "X-User", "--trusted-proxies", "127.0.0.1"],
    "login_certificate": [
        *("--tls-client-ca", "ca.pem", "--tls-cert", "cert.pem", "--tls-key", "key.pem")
    ],
    "login_anonymous": ["--login-keys", "key.pem"],
    "rights": ["--login-keys", "key.pem"],
    "tls_cert": ["--tls-key", "key.pem"],
    "tls_key": ["--tls-cert", "cert.pem"],
    "tls_client_ca": ["--tls-cert", "cert.pem", "--tls-key", "key.pem"],
    "link_cert": ["--link-key", "link.key", "--link-ca", "links.pem"],
    "link_key": ["--link-cert", "link.pem", "--link-ca", "links.pem"],
    "link_ca": ["--link-cert", "link.pem", "--link-key", "link.key"],
}

WRONG: list[tuple[str, str]] = [
    ("port", "-1"),
    ("port", "65536"),
    ("port", "http"),
    ("admin", "127.0.0.1"),
    ("admin", "127.0.0.1:70000"),
    ("redis", "http://valkey"),
    ("redis", "valkey:6379"),
    ("redis", "redis://["),
    ("redis", "redis://valkey:port"),
    ("paths", "cometd"),
    ("paths", "/cometd/"),
    ("paths", "/"),
    ("paths", "/{x}"),
    ("paths", "/a}b"),
    ("paths", "/a b"),
    ("paths", "/a?b"),
    ("paths", "/a#b"),
    ("paths", "/%zz"),
    ("paths", "/\N{LATIN SMALL LETTER E WITH ACUTE}"),
    ("paths", "//evil.test"),
    ("paths", "/a/../b"),
    ("paths", "/a/."),
    ("paths", "/healthz"),
    ("paths", "/static"),
    ("allow_origin", "example.org"),
    ("allow_origin", "https://example.org/"),
    ("allow_origin", "https://user@example.org"),
    ("allow_origin", "https://"),
    ("allow_origin", "ftp://example.org"),
    ("allow_origin", "null"),
    ("allow_origin", "https://*.example.org"),
    ("allow_origin", "https://example.org:port"),
    ("host_name", ""),
    ("host_name", "https://example.org"),
    ("host_name", "example.org:8080"),
    ("host_name", "example.org."),
    ("host_name", "a.*.example"),
    ("host_name", "*."),
    ("host_name", "ex\xe4mple.org"),
    ("extension", "module"),
    ("extension", ":factory"),
    ("extension", "module:not-a-name"),
    ("budget_requests", "-1"),
    ("trusted_proxies", "proxy.example"),
    ("trusted_proxies", "10.0.0.1/8"),
    ("forwarded_header", "X-Real-IP"),
    ("tls_client_ca", "ca.pem"),
    ("tls_cert", "cert.pem"),
    ("tls_key", "key.pem"),
    ("link_cert", "link.pem"),
    ("link_key", "link.key"),
    ("link_ca", "links.pem"),
    ("durability", "replicas"),
    ("durability", "replicas:0"),
    ("durability", "replicas:10"),
    ("durability", "replicas:1"),
    ("durability", "sometimes"),
    ("otlp", "collector:4318"),
    ("log_level", "loud"),
    ("transports", "pigeon"),
    ("timeout", "-1"),
    ("timeout", "soon"),
    ("timeout", "1.5"),
    ("interval", "-1"),
    ("max_interval", "-1"),
    ("max_lazy_timeout", "-1"),
    ("max_sessions_per_browser", "-2"),
    ("duplicate_meta_connect_http_response_code", "200"),
    ("duplicate_meta_connect_http_response_code", "499"),
    ("channels", "{"),
    ("channels", "[]"),
    ("channels", '{"a": {}}'),
    ("channels", '{"/meta/a": {}}'),
    ("channels", '{"/a": {"laz": true}}'),
    ("channels", '{"/a": {"lazy_timeout": -1}}'),
    ("channels", '{"/a": {"topic": true, "destroy_delay": -2}}'),
    ("channels", '{"/a": {"history": -1}}'),
    ("channels", '{"/a": {"history": 10001}}'),
    ("channels", '{"/a": {"history_bytes": 5}}'),
    ("channels", '{"/a": {"history": 5, "work_queue": true}}'),
    ("channels", '{"/a": {"readonly": true}}'),
    ("channels", '{"/a": {"presence": "for some"}}'),
    ("webhooks", "[]"),
    ("webhooks", f'{{"A": {HOOK}}}'),
    ("webhooks", f'{{"a b": {HOOK}}}'),
    ("webhooks", '{"a": {}}'),
    ("webhooks", hook(url="ftp://a.example")),
    ("webhooks", hook(url="http://a.example")),
    ("webhooks", hook(url="https:///path")),
    ("webhooks", hook(url="https://a..example")),
    ("webhooks", hook(url="https://a\\b.example")),
    ("webhooks", hook(url="https://\u202e.example")),
    ("webhooks", hook(url=f"https://{'a' * 64}.example")),
    ("webhooks", hook(url="https://a.example:99999")),
    ("webhooks", hook(url="https://me:pw@a.example")),
    ("webhooks", hook(url="https://a.example/#here")),
    ("webhooks", hook(secret="secret")),
    ("webhooks", hook(secret="whsec_c2hvcnQ=")),
    ("webhooks", hook(secret="whsec_" + "c2VjcmV0" * 30)),
    ("webhooks", hook(former_secret="")),
    ("webhooks", hook(channels=[])),
    ("webhooks", hook(channels=["/meta/connect"])),
    ("webhooks", hook(events=["weather"])),
    ("webhooks", hook(delays=[1] * 21)),
    ("webhooks", hook(delays=[24 * 3_600_000 + 1])),
    ("webhooks", hook(timeout=60_001)),
    ("webhooks", hook(in_flight=17)),
    ("webhooks", hook(redirects=True)),
    ("backend", "[]"),
    ("backend", "{}"),
    ("backend", application(url="http://a.example")),
    ("backend", application(url="https://me:pw@a.example")),
    ("backend", application(secret="secret")),
    ("backend", application(cookies=["a b"])),
    ("backend", application(headers=["a: b"])),
    ("backend", application(headers=["Cookie"])),
    ("backend", application(headers=["Host"])),
    ("backend", application(headers=["Webhook-Id"])),
    ("backend", application(headers=["X"] * 21)),
    ("backend", application(timeout=0)),
    ("backend", application(timeout=2001)),
    ("backend", application(cache=True)),
    ("guard_window", "999"),
    ("guard_receivers", "0"),
    ("guard_messages", "0"),
    ("guard_messages", "1001"),
    ("guard_retry", "99"),
    ("max_inactivity", "-1"),
    ("login_keys", "http://id.example/keys"),
    ("login_issuer", "id.example"),
    ("login_issuer", "http://id.example"),
    ("login_leeway", "-1"),
    ("login_leeway", "7"),
    ("login_subject_claim", "name"),
    ("login_groups_claim", "roles"),
    ("login_warning", "7"),
    ("login_header", "X-User"),
    ("login_header", "a b"),
    ("login_groups_header", "X-Groups"),
    ("login_audience", "push"),
    ("login_cookie", "token"),
    ("login_key_host", "keys.example"),
    ("rights", "rights.toml"),
    ("browser_cookie_name", "a b"),
    ("browser_cookie_name", ""),
    ("browser_cookie_name", "a=b"),
    ("browser_cookie_name", "a\r\nX: y"),
    ("browser_cookie_domain", "a;b"),
    ("browser_cookie_path", "a"),
    ("browser_cookie_path", "/;x"),
    ("browser_cookie_path", "/\n"),
    ("browser_cookie_max_age", "x"),
    ("browser_cookie_same_site", "lax"),
    ("browser_cookie_name", "__Host-b"),
    ("browser_cookie_name", "__host-b"),
    ("browser_cookie_name", "__Secure-b"),
    ("hsts", "-1"),
    ("callback_parameter", ""),
    ("callback_parameter_max_length", "0"),
    ("ws_messages_per_frame", "-2"),
    ("ws_idle_timeout", "-1"),
    ("ws_protocol", "a b"),
    ("max_message_size", "0"),
    ("max_request_size", "0"),
    ("max_unfinished_bytes", "0"),
    ("max_batch", "0"),
    ("max_depth", "7"),
    ("max_depth", "513"),
    ("max_values", "0"),
    ("max_subscriptions", "0"),
    ("max_session_filters", "0"),
    ("max_topics", "0"),
    ("max_outstanding", "0"),
    ("max_total_outstanding", "0"),
    ("reply_timeout", "0"),
    ("max_reply_timeout", "0"),
    ("max_filters", "0"),
    ("max_total_subscriptions", "0"),
    ("max_queue", "0"),
    ("max_queue_bytes", "0"),
    ("dead_letter_bytes", "0"),
    ("dead_letter_share_bytes", "0"),
    ("max_subject_queue", "0"),
    ("max_subject_queue_bytes", "0"),
    ("max_subject_queues", "0"),
    ("max_history", "0"),
    ("max_history_bytes", "0"),
    ("max_readers", "0"),
    ("max_work_queue", "0"),
    ("max_work_queue_bytes", "0"),
    ("max_work_queues", "0"),
    ("max_delay", "-1"),
    ("max_delayed", "0"),
    ("max_delayed_bytes", "0"),
    ("max_publish_keys", "0"),
    ("max_sessions", "0"),
    ("max_sessions_per_subject", "0"),
    ("max_channel_length", "0"),
    ("max_channel_segments", "0"),
    ("handshake_rate", "0"),
    ("restart_timeout", "0"),
    ("frozen_timeout", "0"),
    ("silent_timeout", "0"),
    ("request_timeout", "0"),
    ("publish_timeout", "0"),
    ("write_timeout", "0"),
    ("shutdown_timeout", "-1"),
]


class Command:
    """`serve`, but it only reads its settings."""

    def __init__(self) -> None:
        self.settings: Settings | None = None
        self._program = Program(pretty_exceptions_enable=False)
        self._program.command(cls=WithManyOptions)(self._read)

    def _read(self, *, config: ConfigFile = None, given: GivenSettings) -> None:
        """Read."""
        with telling_failures():
            self.settings = read_settings(config, given)

    def run(self, *arguments: str, **variables: str) -> Result:
        env = {f"HOLDFAST_{name.upper()}": text for name, text in variables.items()}
        return CliRunner().invoke(self._program, arguments, env=env)

    def read(self, *arguments: str, **variables: str) -> Settings:
        result = self.run(*arguments, **variables)
        assert result.exit_code == 0, result.output
        assert self.settings is not None
        return self.settings


@pytest.fixture(scope="module")
def command() -> Command:
    return Command()


@pytest.fixture(autouse=True)
def nothing_else_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """There is no settings file, and no setting in the environment."""
    monkeypatch.chdir(tmp_path)


def as_flags(name: str) -> list[str]:
    flag = name.replace("_", "-")
    value, texts = SAMPLES[name]
    if isinstance(value, bool):
        return [f"--{flag}" if value else f"--no-{flag}"]
    return [word for text in texts for word in (f"--{flag}", text)]


def as_variable(name: str) -> str:
    value, texts = SAMPLES[name]
    if isinstance(value, bool):
        return str(value).lower()
    return json.dumps(value) if isinstance(value, list) else texts[0]


def as_file_value(name: str) -> Any:
    value, texts = SAMPLES[name]
    if name in ("backend", "channels", "webhooks"):
        return json.loads(texts[0])
    return str(value) if isinstance(value, Path) else value


def test_every_setting_has_a_sample_that_is_not_its_default() -> None:
    assert list(SAMPLES) == list(Settings.model_fields)
    for name, field in Settings.model_fields.items():
        assert field.get_default() != SAMPLES[name][0], name


@pytest.mark.slow
def test_a_setting_can_be_a_flag(command: Command) -> None:
    for name, (value, _) in SAMPLES.items():
        found = command.read(*as_flags(name), *COMPANIONS.get(name, []))
        assert getattr(found, name) == value, name


@pytest.mark.slow
def test_a_setting_can_be_a_variable(command: Command) -> None:
    for name, (value, _) in SAMPLES.items():
        found = command.read(*COMPANIONS.get(name, []), **{name: as_variable(name)})
        assert getattr(found, name) == value, name


@pytest.mark.slow
def test_a_setting_can_be_in_the_file(command: Command) -> None:
    for name, (value, _) in SAMPLES.items():
        Path("holdfast.toml").write_text(as_toml({name: as_file_value(name)}), "utf-8")
        found = command.read(*COMPANIONS.get(name, []))
        assert getattr(found, name) == value, name


def test_flags_win_over_variables_and_variables_over_the_file(command: Command) -> None:
    Path("own.toml").write_text('timeout = 1\ninterval = 1\nmax_interval = 1\nhost = "::1"\n')
    found = command.read("--config", "own.toml", "--timeout", "3", timeout="2", interval="2")
    assert (found.timeout, found.interval, found.max_interval, found.host) == (3, 2, 1, "::1")


def test_a_negative_flag_wins_too(command: Command) -> None:
    Path("holdfast.toml").write_text("ack = true\n")
    assert not command.read("--no-ack", ack="true").ack
    assert command.read("--ack", ack="false").ack


def test_a_named_file_replaces_the_default_one(command: Command) -> None:
    Path("holdfast.toml").write_text("timeout = 1\ninterval = 1\n")
    Path("own.toml").write_text("timeout = 2\n")
    found = command.read("--config", "own.toml")
    assert (found.timeout, found.interval) == (2, 0)


@pytest.mark.slow
def test_a_wrong_flag_stops_the_start_and_is_named(command: Command) -> None:
    for name, text in WRONG:
        result = command.run(f"--{name.replace('_', '-')}", text)
        assert result.exit_code == 2, (name, text, result.exception)
        complaint = result.stderr.replace("-", "_")
        assert name in complaint, text
        assert "Traceback" not in complaint


def test_channels_are_overridden_one_by_one(command: Command, tmp_path: Path) -> None:
    file = tmp_path / "holdfast.toml"
    file.write_text("[channels.'/a']\nlazy = true\n[channels.'/b']\nlazy = true\n")
    channels = '{"/b": {"lazy": false}}'
    found = command.read("--config", str(file), channels=channels).channels
    assert {pattern: rule.lazy for pattern, rule in found.items()} == {"/a": True, "/b": False}


@pytest.mark.slow
def test_a_wrong_variable_stops_the_start_and_is_named(command: Command) -> None:
    for name, text in [each for each in WRONG if each[0] != "paths"]:
        is_list = isinstance(SAMPLES[name][0], list)
        result = command.run(**{name: json.dumps([text]) if is_list else text})
        assert result.exit_code == 2, (name, text, result.exception)
        assert name in result.stderr, text


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ("timeout = [1]", "timeout"),
        ("timout = 1", "timout: this setting does not exist: did you mean timeout?\n"),
        ("guard = true", 'guard: this setting does not exist: it belongs in [channels."NAME"]\n'),
        ("headers = ['a']", "headers: this setting does not exist: it belongs in [backend]\n"),
        ("[channels.'/a']\nmax_queue = 1", "exist: max_queue belongs above all tables\n"),
        ("zzz = 1", "zzz: this setting does not exist\n"),
        ("[channels.'/a']\nlazi = true", "does not exist: did you mean lazy?\n"),
        ("allow_origin = 'https://a.test'", 'a valid list: write ["…"]\n'),
        ('admin = "9000"', "admin: must be HOST:PORT, such as 127.0.0.1:9000"),
        ("transports = []", "transports"),
        ("paths = []", "paths"),
        ('paths = ["/a", "/a"]', "paths"),
        ("[channels.'/a']\nlazy = 'x'", "channels"),
        ("timeout = ", "own.toml"),
        ("\x00", "own.toml"),
        ("timeout = 1\ntimeout = 2", "own.toml"),
    ],
)
def test_a_wrong_file_stops_the_start_and_is_named(
    content: str, named: str, command: Command
) -> None:
    Path("own.toml").write_text(content)
    result = command.run("--config", "own.toml")
    assert result.exit_code == 2, result.exception
    assert named in result.stderr


def test_a_binary_file_stops_the_start(command: Command) -> None:
    Path("own.toml").write_bytes(b'host = "\xff"')
    result = command.run("--config", "own.toml")
    assert result.exit_code == 2, result.exception
    assert "own.toml" in result.stderr


def test_a_missing_file_stops_the_start(command: Command) -> None:
    result = command.run("--config", "none.toml")
    assert result.exit_code == 2
    assert "none.toml" in result.stderr


def test_an_unknown_variable_stops_the_start(command: Command) -> None:
    result = command.run(timout="1")
    assert result.exit_code == 2
    assert (
        "HOLDFAST_TIMOUT: this setting does not exist: did you mean HOLDFAST_TIMEOUT?"
        in result.stderr
    )
    told = command.run(guard="true").stderr
    assert 'HOLDFAST_GUARD: this setting does not exist: it belongs in [channels."NAME"]' in told


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("allow_origin", 'allow_origin: HOLDFAST_ALLOW_ORIGIN must be JSON: write ["…"]\n'),
        ("channels", "channels: HOLDFAST_CHANNELS must be JSON\n"),
    ],
)
def test_a_variable_that_is_no_json_is_told_how_it_is_written(
    command: Command, name: str, told: str
) -> None:
    assert told in command.run(**{name: "https://a.test"}).stderr


def test_variables_of_a_kubernetes_service_with_this_name_are_ignored(command: Command) -> None:
    """Kubernetes tells neighbouring containers of it in variables that look like settings."""
    Path("holdfast.toml").write_text("port = 9090\n")
    found = command.read(
        service_host="10.0.0.11",
        service_port="8080",
        service_port_http="8080",
        port="tcp://10.0.0.11:8080",
        port_8080_tcp="tcp://10.0.0.11:8080",
        port_8080_tcp_proto="tcp",
        port_8080_tcp_port="8080",
        port_8080_tcp_addr="10.0.0.11",
    )
    assert (found.port, found.host) == (9090, "127.0.0.1")
    assert command.run(service_hosts="10.0.0.11").exit_code == 2


def test_every_wrong_setting_is_named_at_once(command: Command) -> None:
    result = command.run("--timeout", "-1", "--max-batch", "0")
    assert "timeout" in result.stderr
    assert "max_batch" in result.stderr


@pytest.mark.parametrize("text", ["[/x]", "[bold]", "\\[", "[red]x[/]", "[link=http://x]y"])
def test_an_error_shows_the_value_as_it_was_written(text: str, command: Command) -> None:
    result = command.run("--paths", text)
    assert result.exit_code == 2, result.exception
    assert repr(text) in result.stderr


@pytest.mark.parametrize("limit", ["--max-channel-length=20", "--max-channel-segments=2"])
def test_limits_too_narrow_for_the_chat_are_refused_unless_it_is_off(
    command: Command, limit: str
) -> None:
    assert "switch chat off" in command.run(limit).stderr
    assert not command.read(limit, "--no-chat").chat


@pytest.mark.parametrize("columns", ["40", "80", "200"])
def test_the_help_has_every_flag_in_full(columns: str) -> None:
    result = CliRunner().invoke(program, ["serve", "--help"], env={"COLUMNS": columns})
    words = result.stdout.split()
    for name, field in Settings.model_fields.items():
        assert f"--{name.replace('_', '-')}" in words, name
        assert field.description


def test_the_help_has_the_headings_of_the_settings_in_their_order() -> None:
    lines = help_of_serve().splitlines()
    headings = [line.removesuffix(":") for line in lines if line.endswith(":") and line[0] != " "]
    assert headings == ["Options", SET_OFTEN, *(section.heading for section in SECTIONS)]


def test_the_help_shows_units_and_no_links() -> None:
    told = " ".join(help_of_serve().split())
    assert "--journal-age MS" in told
    assert "[604800000, 7 d]" in told
    assert "--max-message-size BYTES Maximum size of one message. [2097152, 2 MiB]" in told
    assert "--browser-cookie-max-age SECONDS" in told
    assert "--interval MS Time that clients wait between two connects. [0]" in told
    assert "](" not in told


def test_settings_that_are_times_or_sizes_have_a_unit() -> None:
    for name, field in Settings.model_fields.items():
        is_measured = re.search("(^|_)(timeout|interval|age|bytes|size)$", name)
        assert (unit_of(field.metadata) is not None) or not is_measured, name


def help_of_serve() -> str:
    return CliRunner().invoke(program, ["serve", "--help"], env={"COLUMNS": "100"}).stdout


def test_the_server_reads_only_the_options_that_are_given(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[object] = []
    make = vars(typer.core)["build_runtime_param"]

    def note(about: Any) -> object:
        made.append(about.annotation)
        return make(about)

    monkeypatch.setattr("typer.core.build_runtime_param", note)
    command = Command()
    assert command.read("--port", "1", "--max-queue=7").max_queue == 7
    # And the call for help.
    assert made == [bool, int, int]
    assert command.read("--node", "a").max_queue == Settings.model_fields["max_queue"].get_default()


def test_an_option_that_does_not_exist_is_compared_with_all(command: Command) -> None:
    failed = command.run("--max-quue", "3")
    assert failed.exit_code == 2
    assert "--max-queue" in failed.output


def test_a_setting_that_is_a_number_or_a_word_takes_both_as_a_flag() -> None:
    assert value_type(Settings.model_fields["workers"].annotation) is str
    assert value_type(int | None) is int
