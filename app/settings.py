"""The settings: flags first, then `HOLDFAST_*` variables, then `holdfast.toml`."""

import ipaddress
import os
import re
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from holdfast.delivery.channels import Channels, Kind
from holdfast.delivery.history_depth import HISTORY_BYTES, MOST_ENTRIES

Transport = Literal["websocket", "long-polling", "callback-polling"]
Milliseconds = Annotated[int, Field(ge=0)]
Limit = Annotated[int, Field(ge=1)]
# The chat is off if channel names may not be this long.
_CHAT_LENGTH = len("/service/chat/private")
_CHAT_SEGMENTS = "/sys/presence/chat/room/NAME".count("/")
_YEAR_S = 365 * 24 * 3600
_ADDRESS = re.compile(r"(?:[^:\s]+|\[[0-9a-fA-F:]+\]):([0-9]{1,5})")
_HOST_NAME = re.compile(r"\*|(?:\*\.)?(?:[A-Za-z0-9_-]+\.)*[A-Za-z0-9_-]+")
# Paths as they appear in requests, without characters that have several spellings.
_PATH = re.compile(r"(?:/(?!\.\.?(?:/|$))[A-Za-z0-9._~!$&'()*+,;=:@-]+)+")
# The first segments of the server's other paths.
_TAKEN = frozenset({"admin", "chat", "console", "healthz", "readyz", "metrics", "static"})
# The form of variables that Kubernetes sets for a Service named `holdfast`.
_LINK = re.compile(r"(?:tcp|udp|sctp)://")
_LINKS = re.compile(
    r"HOLDFAST_(?:SERVICE_HOST|SERVICE_PORT(?:_.+)?|PORT_\d+_(?:TCP|UDP|SCTP)(?:_.+)?)"
)
# Variables of the commands that talk to a running server.
OF_THE_COMMAND_LINE = frozenset({"HOLDFAST_URL", "HOLDFAST_TOKEN_FILE"})
# A token of HTTP, such as the name of a cookie or sub-protocol.
Token = Annotated[str, Field(pattern=r"^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")]


class ChannelSettings(BaseModel):
    """Settings of the channels that match a pattern."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    lazy: bool = False
    lazy_timeout: Milliseconds | None = None
    broadcast_to_publisher: bool = True
    durable: bool | None = None
    dead_letters: bool = True
    attempts: Limit = 1
    backoff: Milliseconds = 1_000
    longest_backoff: Milliseconds = 60_000
    max_attempts: Limit | None = None
    history: Annotated[int, Field(ge=0, le=MOST_ENTRIES)] = 0
    history_bytes: Limit = HISTORY_BYTES
    work_queue: bool = False
    topic: bool = False
    destroy_delay: Annotated[int, Field(ge=-1)] = 60_000
    readonly: bool = False
    presence: bool = False

    @model_validator(mode="after")
    def _check_topic(self) -> Self:
        """Refuse options that have no effect."""
        if "history_bytes" in self.model_fields_set and not self.history:
            raise ValueError("history_bytes has no effect without history")
        if self.work_queue and self.history:
            raise ValueError("work_queue: what one receiver takes is not kept, so no history")
        of_topics = {"destroy_delay", "readonly"} & self.model_fields_set
        if of_topics and not self.topic:
            raise ValueError(f"{min(of_topics)} needs topic = true")
        return self


class _Environment(EnvSettingsSource):
    """Environment variables, except a port that Kubernetes has set to a URL."""

    def __call__(self) -> dict[str, Any]:
        found = super().__call__()
        if _LINK.match(str(found.get("port"))):
            del found["port"]
        return found


def _check_url(name: str, url: str) -> None:
    """Keys that come over a network must come over TLS, unless from this machine."""
    parts = urlsplit(url)
    is_here = parts.hostname in ("localhost", "127.0.0.1", "::1")
    if not parts.hostname or (parts.scheme != "https" and not (parts.scheme == "http" and is_here)):
        raise ValueError(f"{name} must be an https URL")


class Settings(BaseSettings):
    """Every setting, with CometD's names and defaults where it has one; times in milliseconds."""

    model_config = SettingsConfigDict(env_prefix="HOLDFAST_", extra="forbid", frozen=True)

    host: str = Field("127.0.0.1", description="Address to listen on.")
    port: int = Field(8080, ge=0, le=65535, description="Port to listen on; 0 picks a free one.")
    unix: Path | None = Field(None, description="Listen on this Unix socket instead.")
    admin: str | None = Field(
        None,
        description="Separate address for the administration, as HOST:PORT. Beyond loopback it "
        "uses TLS if the server has a certificate.",
    )
    open: bool = Field(
        False,
        description="Allow an address beyond loopback: everybody who can reach the port may "
        "connect.",
    )
    data: Path = Field(Path("data"), description="Data directory, for this server only.")
    redis: str | None = Field(
        None,
        description="URL of a Redis or Valkey: redis://HOST:PORT/DB. By default the server "
        "runs its own Valkey in the data directory.",
    )
    namespace: str = Field(
        "holdfast",
        pattern=r"^[a-z0-9-]{1,32}$",
        description="Name of this deployment in Redis, the prefix of all its keys.",
    )
    node: str = Field(
        "holdfast",
        pattern=r"^[a-z0-9-]{1,32}$",
        description="Name of this server; message ids begin with it.",
    )
    durable: Literal["none", "named", "acked"] = Field(
        "named",
        description="Sessions that survive a restart of the server: none, named ones, or also "
        "those with acknowledgements.",
    )
    journal: bool = Field(True, description="Record the life of every message in the journal.")
    journal_age: Milliseconds = Field(
        7 * 24 * 3600 * 1000,
        description="Time after which journal frames are removed, read or not.",
    )
    journal_size: Limit = Field(
        128 * 1024**2,
        description="Maximum size of the journal in the store; beyond it the oldest frames are "
        "removed.",
    )
    durability: str = Field(
        "everysec",
        pattern=r"^(?:memory|everysec|always|replicas:[1-9])$",
        description="When a write counts as safe: memory, everysec, always, replicas:N.",
    )
    paths: list[str] = Field(["/cometd", "/bayeux"], description="Paths of the Bayeux server.")
    allow_origin: list[str] = Field(
        [], description="Origin whose pages may use this server, besides its own; * allows all."
    )
    trusted_proxies: list[str] = Field(
        [],
        description="Address or network of a proxy that is trusted to report the client's "
        "address; unix trusts all who connect to the Unix socket.",
    )
    forwarded_header: Literal["X-Forwarded-For", "Forwarded"] = Field(
        "X-Forwarded-For",
        description="Header in which trusted proxies report the client's address; the other one "
        "is ignored.",
    )
    host_name: list[str] = Field(
        [],
        description="Host name by which clients reach this server, besides localhost, literal "
        "addresses, host, and the hosts of allow_origin. *.example.org allows all "
        "names below example.org, * allows all.",
    )
    extension: list[str] = Field([], description="Extension to install, as MODULE:FACTORY.")
    tls_cert: Path | None = Field(None, description="Certificate chain; switches TLS on.")
    tls_key: Path | None = Field(None, description="Private key of the certificate.")
    tls_client_ca: Path | None = Field(
        None,
        description="Certificate authorities for client certificates, which are requested but "
        "not required. Extensions see the subject.",
    )
    fast_lane: bool = Field(
        True, description="Answer ordinary POST requests without aiohttp's request handling."
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="Lowest level that is logged."
    )

    transports: list[Transport] = Field(
        ["websocket", "long-polling"],
        min_length=1,
        description="Transports to offer, the preferred one first: websocket, long-polling, "
        "callback-polling (JSONP).",
    )
    timeout: Milliseconds = Field(30_000, description="Maximum time for which a connect is held.")
    interval: Milliseconds = Field(0, description="Time that clients wait between two connects.")
    max_interval: Milliseconds = Field(
        10_000,
        description="Time without a connect, beyond the interval, after which a session ends.",
    )
    max_lazy_timeout: Milliseconds = Field(5_000, description="Maximum delay of lazy messages.")
    meta_connect_deliver_only: bool = Field(
        False, description="Deliver messages with replies to connects only."
    )
    handshake_reconnect: bool = Field(
        False, description="Advise maxInterval, so that clients know when to handshake again."
    )
    allow_message_delivery_during_handshake: bool = Field(
        False, description="Deliver messages with replies to handshakes."
    )
    broadcast_to_publisher: bool = Field(
        True, description="Deliver a message to its publisher too, if it has subscribed."
    )
    trust_client_session: bool = Field(
        False,
        description="Accept a client id without the cookie of its session, also from browsers "
        "and over HTTP.",
    )
    max_sessions_per_browser: int = Field(
        1, ge=-1, description="Held connects per browser over HTTP; -1 is unlimited."
    )
    multi_session_interval: int = Field(
        2_000,
        description="Polling interval for sessions beyond max_sessions_per_browser; 0 refuses "
        "them.",
    )
    duplicate_meta_connect_http_response_code: int = Field(
        409,
        ge=400,
        le=599,
        description="HTTP status of a held connect that a newer connect replaces.",
    )
    channels: dict[str, ChannelSettings] = Field(
        {}, description="Settings of channels, by pattern."
    )

    delivery: bool = Field(
        True, description="Offer reliable delivery, with verdicts on single messages."
    )
    dead_letter_age: Milliseconds = Field(
        30 * 24 * 3600 * 1000, description="Time after which dead letters are removed."
    )
    dead_letter_count: Limit = Field(100_000, description="Maximum number of dead letters.")
    dead_letter_bytes: Limit = Field(256 * 1024**2, description="Maximum size of all dead letters.")
    dead_letter_share_bytes: Limit = Field(
        64 * 1024**2,
        description="Maximum size of the dead letters of one channel, and of one subject.",
    )
    guard: bool = Field(
        True,
        description="Hold a channel when its receivers are broken and refuse every message.",
    )
    guard_window: int = Field(
        60_000, ge=1_000, description="Time for which the guard remembers refusals."
    )
    guard_receivers: Limit = Field(
        3, description="Minimum number of receivers that refuse before a channel is held."
    )
    guard_messages: int = Field(
        5,
        ge=1,
        le=1_000,
        description="Minimum number of refused messages before a channel is held.",
    )
    guard_retry: int = Field(
        5_000,
        ge=100,
        le=300_000,
        description="Delay before a held channel is probed; it doubles, up to 5 minutes.",
    )

    ack: bool = Field(True, description="Offer acknowledged messages.")
    timesync: bool = Field(True, description="Offer clock synchronisation.")
    chat: bool = Field(True, description="Offer the chat demo at /chat/.")
    timestamp: bool = Field(False, description="Add a timestamp to every message sent.")
    max_inactivity: Milliseconds = Field(
        0,
        description="Time after which a session that sends only connects ends; 0 is never.",
    )

    login_keys: str | None = Field(
        None,
        description="Keys that verify tokens (JWT): a file with a JWK Set, public keys in PEM or "
        "a secret, or the https URL of a JWK Set.",
    )
    login_issuer: str | None = Field(
        None,
        description="The iss that tokens must have. Without login_keys, the URL of an OpenID "
        "provider, which is asked for its keys.",
    )
    login_audience: list[str] = Field(
        [], description="Audience (aud) of which a token must have one; by default any."
    )
    login_leeway: Milliseconds = Field(
        30_000, description="Difference between the clocks of the issuer and this server."
    )
    login_subject_claim: str = Field(
        "sub", min_length=1, description="Claim with the subject, as a.b within another claim."
    )
    login_groups_claim: str = Field(
        "groups", min_length=1, description="Claim with the groups, as a.b within another claim."
    )
    login_rights_claim: str | None = Field(
        None,
        min_length=1,
        description="Claim with rights of the token's own, as a.b within another claim.",
    )
    login_key_host: list[str] = Field(
        [],
        description="Host, besides the issuer's own, from which the provider's keys may come.",
    )
    login_cookie: Token | None = Field(None, description="Cookie in which a token may come.")
    login_passwords: Path | None = Field(
        None, description="File of users and passwords, made by holdfast user."
    )
    login_header: Token | None = Field(
        None, description="Header in which trusted proxies name the subject."
    )
    login_groups_header: Token | None = Field(
        None, description="Header in which trusted proxies list the groups, separated by commas."
    )
    login_certificate: bool = Field(
        False,
        description="Take the subject from the common name of a verified client certificate, and "
        "the groups from its organizational units.",
    )
    login_anonymous: bool = Field(
        False, description="Let clients without credentials in, as anonymous."
    )
    login_warning: Milliseconds = Field(
        60_000, description="Time before the end of a login at which the client is warned."
    )
    rights: Path | None = Field(
        None,
        description="File that says who may do what. By default every client may do everything.",
    )

    browser_cookie_name: Token | None = Field(
        None,
        description="Name of the browser cookie. By default BAYEUX_BROWSER, with the prefix "
        "__Host- if the cookie is secure and has neither a domain nor a path.",
    )
    browser_cookie_domain: str | None = Field(
        None, pattern=r"^[A-Za-z0-9.-]+$", description="Domain of the browser cookie."
    )
    browser_cookie_path: str = Field(
        "/", pattern=r"^/[!-:<-~]*$", description="Path of the browser cookie."
    )
    browser_cookie_max_age: int | None = Field(
        None, description="Max-Age of the browser cookie, in seconds."
    )
    browser_cookie_secure: bool | None = Field(
        None,
        description="Send the browser cookie over TLS only. By default on if the server has a "
        "certificate; switch it on if a proxy terminates TLS.",
    )
    browser_cookie_http_only: bool = Field(
        True, description="Hide the browser cookie from scripts."
    )
    browser_cookie_same_site: Literal["Strict", "Lax", "None"] | None = Field(
        None, description="SameSite attribute of the browser cookie."
    )
    browser_cookie_partitioned: bool = Field(
        False, description="Use a separate browser cookie for each embedding site (Partitioned)."
    )

    hsts: int | None = Field(
        None,
        ge=0,
        description="Seconds for which browsers must use TLS with this host (HSTS); 0 ends it. "
        "By default a year, if the server has a certificate or "
        "browser_cookie_secure is set.",
    )

    callback_parameter: str = Field(
        "jsonp", min_length=1, description="Query parameter with the name of the JSONP callback."
    )
    callback_parameter_max_length: Limit = Field(
        64, description="Maximum length of the callback's name."
    )
    ws_messages_per_frame: int = Field(
        1, ge=-1, description="Maximum messages in one WebSocket frame; -1 puts all into one."
    )
    ws_idle_timeout: Milliseconds = Field(
        300_000,
        description="Time without received data after which a WebSocket is closed; 0 is never.",
    )
    ws_session_timeout: Limit = Field(
        10_000, description="Time within which a new WebSocket must name a session, or is closed."
    )
    ws_require_handshake_per_connection: bool = Field(
        False, description="Require a handshake as the first message of each WebSocket."
    )
    ws_protocol: Token | None = Field(
        None, description="WebSocket subprotocol that clients must offer."
    )

    max_message_size: Limit = Field(2 * 1024**2, description="Maximum size of one message.")
    max_request_size: Limit = Field(
        4 * 1024**2, description="Maximum size of one request, decompressed."
    )
    max_unfinished_bytes: Limit = Field(
        256 * 1024**2,
        description="Maximum size of all incomplete and waiting requests together; one address "
        "may use half of it.",
    )
    max_batch: Limit = Field(5_000, description="Maximum messages in one request.")
    max_depth: int = Field(512, ge=8, le=512, description="Maximum nesting of JSON.")
    max_values: Limit = Field(
        65_000,
        description="Maximum number of JSON values and names of members in one request; an array "
        "or an object counts as two.",
    )
    max_subscriptions: Limit = Field(10_000, description="Maximum subscriptions of one session.")
    max_session_filters: Limit = Field(
        100, description="Maximum subscriptions of one session that have a filter."
    )
    max_topics: Limit = Field(100_000, description="Maximum topics.")
    max_filters: Limit = Field(
        250, description="Maximum different filters of all subscriptions together."
    )
    max_total_subscriptions: Limit = Field(
        2_000_000,
        description="Maximum subscriptions of all sessions together. Beyond it, each session "
        "may still have this number divided by max_sessions.",
    )
    max_queue: Limit = Field(10_000, description="Maximum messages in the queue of one session.")
    max_queue_bytes: Limit = Field(
        16 * 1024**2, description="Maximum size of the queue of one session."
    )
    max_subject_queue: Limit = Field(
        10_000, description="Maximum messages that wait for one subject without sessions."
    )
    max_subject_queue_bytes: Limit = Field(
        16 * 1024**2, description="Maximum size of the messages that wait for one subject."
    )
    max_subject_queues: Limit = Field(
        10_000, description="Maximum number of subjects that messages wait for."
    )
    ptp_create_session: bool = Field(
        default=False,
        description="Whether a message with `forceQueuing` may wait for a named session that does "
        "not exist: see [point-to-point](point-to-point.md#sessions-that-do-not-exist).",
    )
    max_history: Limit = Field(
        100_000, description="Maximum messages in the histories of all channels together."
    )
    max_history_bytes: Limit = Field(
        64 * 1024**2, description="Maximum size of the messages in all histories."
    )
    max_work_queue: Limit = Field(
        10_000, description="Maximum messages that wait in one [work queue](work-queues.md)."
    )
    max_work_queue_bytes: Limit = Field(
        16 * 1024**2, description="Maximum size of the messages that wait in one work queue."
    )
    max_work_queues: Limit = Field(
        10_000, description="Maximum number of work queues that messages wait in."
    )
    max_publish_keys: Limit = Field(
        1_000_000, description="Maximum number of publish keys that the server remembers."
    )
    max_sessions: Limit = Field(100_000, description="Maximum number of sessions.")
    max_sessions_per_subject: Limit = Field(
        10, description="Maximum named sessions of one subject; a client may ask for a lower limit."
    )
    max_names_per_browser: Limit = Field(
        100,
        description="Maximum named sessions of one browser cookie, if no policy decides who may "
        "use which name.",
    )
    max_names_per_address: Limit = Field(
        1_000,
        description="Maximum named sessions of one address, as trusted_proxies report it, if no "
        "policy decides who may use which name.",
    )
    max_session_timeout: Limit = Field(
        24 * 3600 * 1000,
        description="Longest session timeout that a client may ask for; a policy may grant more.",
    )
    unconnected_share: int = Field(
        50,
        ge=0,
        le=100,
        description="Percentage of max_sessions that unconnected sessions may keep when session "
        "slots run out; the idlest ones beyond it are evicted first.",
    )
    max_channel_length: Limit = Field(1024, description="Maximum length of a channel name.")
    max_channel_segments: Limit = Field(64, description="Maximum segments of a channel name.")
    handshake_rate: Limit = Field(20_000, description="Maximum handshakes per second.")
    budget_requests: int = Field(
        2_000,
        ge=0,
        description="Maximum requests per second of one address, and of one subject; 0 is "
        "unlimited.",
    )
    budget_handshakes: int = Field(200, ge=0, description="The same for handshakes.")
    budget_publishes: int = Field(
        2_000, ge=0, description="The same for publishes and service calls."
    )
    budget_bytes: int = Field(16 * 1024**2, ge=0, description="The same for bytes of requests.")
    budget_letters: int = Field(
        200, ge=0, description="The same for refused messages, which become dead letters."
    )
    quota_sessions: int = Field(
        5_000,
        ge=0,
        description="Maximum sessions of one address, and of one subject; 0 is unlimited.",
    )
    quota_subscriptions: int = Field(200_000, ge=0, description="The same for subscriptions.")
    quota_waiting_bytes: int = Field(
        512 * 1024**2, ge=0, description="The same for the bytes that wait in their queues."
    )
    quota_addressed: int = Field(
        1_000,
        ge=0,
        description="Maximum messages from one address, and from one subject, that wait for "
        "subjects without sessions; 0 is unlimited.",
    )
    quota_addressed_bytes: int = Field(
        64 * 1024**2, ge=0, description="The same for the bytes of these messages."
    )
    quota_history: int = Field(
        50_000,
        ge=0,
        description="Maximum messages of one subject, or of one address without subjects, in all "
        "histories; the oldest of them make room. 0 is unlimited.",
    )
    quota_history_bytes: int = Field(
        32 * 1024**2, ge=0, description="The same for the bytes of these messages."
    )
    quota_topics: int = Field(
        10_000,
        ge=0,
        description="Maximum topics that publishes of one address, and of one subject, have made; "
        "0 is unlimited.",
    )
    request_timeout: Limit = Field(
        30_000, description="Time within which a request must arrive completely."
    )
    write_timeout: Limit = Field(
        30_000,
        description="Time for which a client may stop reading before its connection is closed.",
    )
    shutdown_timeout: Milliseconds = Field(5_000, description="Maximum time for an orderly stop.")

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return init_settings, _Environment(settings_cls), TomlConfigSettingsSource(settings_cls)

    @field_validator("paths")
    @classmethod
    def _check_paths(cls, paths: list[str]) -> list[str]:
        for path in paths:
            if _PATH.fullmatch(path) is None:
                raise ValueError(f"{path!r} must begin with a slash and not end with one")
            if path.split("/")[1] in _TAKEN:
                raise ValueError(f"{path!r} is used by another part of the server")
        if not paths or len(set(paths)) < len(paths):
            raise ValueError("name at least one path, and each path once")
        return paths

    @field_validator("allow_origin")
    @classmethod
    def _check_origins(cls, origins: list[str]) -> list[str]:
        for origin in origins:
            parts = urlsplit(origin)
            more = parts.path or parts.query or parts.fragment or "@" in parts.netloc
            is_web = parts.scheme in ("http", "https") and parts.netloc and origin.isascii()
            if origin != "*" and (more or not is_web or "*" in origin or parts.port == 0):
                raise ValueError(f"{origin!r} must be like https://example.org, or *")
        return origins

    @field_validator("trusted_proxies")
    @classmethod
    def _check_proxies(cls, proxies: list[str]) -> list[str]:
        for proxy in proxies:
            if proxy != "unix":
                # The error of `ip_network` says what is wrong, such as bits behind the mask.
                ipaddress.ip_network(proxy)
        return proxies

    @field_validator("host_name")
    @classmethod
    def _check_host_names(cls, names: list[str]) -> list[str]:
        for name in names:
            if _HOST_NAME.fullmatch(name) is None:
                raise ValueError(f"{name!r} must be like push.example.org, *.example.org or *")
        return names

    @field_validator("extension")
    @classmethod
    def _check_extensions(cls, extensions: list[str]) -> list[str]:
        for extension in extensions:
            module, _, factory = extension.partition(":")
            if not module or not factory.isidentifier():
                raise ValueError(f"{extension!r} must be like package.module:factory")
        return extensions

    @field_validator("channels")
    @classmethod
    def _check_channels(cls, channels: dict[str, ChannelSettings]) -> dict[str, ChannelSettings]:
        known = Channels()
        for pattern in channels:
            channel = known.get(pattern)
            if channel is None or channel.kind is not Kind.BROADCAST:
                raise ValueError(f"{pattern!r} is not a channel or pattern for publishes")
        return channels

    @field_validator("duplicate_meta_connect_http_response_code")
    @classmethod
    def _check_status(cls, status: int) -> int:
        HTTPStatus(status)
        return status

    @field_validator("admin")
    @classmethod
    def _check_admin(cls, address: str | None) -> str | None:
        if address is not None:
            found = _ADDRESS.fullmatch(address)
            if found is None or int(found[1]) > 65535:
                raise ValueError("must be HOST:PORT, such as 127.0.0.1:9000")
        return address

    @field_validator("redis")
    @classmethod
    def _check_redis(cls, url: str | None) -> str | None:
        if url is not None:
            parts = urlsplit(url)
            if parts.scheme not in ("redis", "rediss", "unix") or parts.port == 0:
                raise ValueError("must be like redis://host:6379/0")
        return url

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        if (self.tls_cert is None) != (self.tls_key is None):
            raise ValueError("tls_cert and tls_key require each other")
        if self.tls_client_ca is not None and self.tls_cert is None:
            raise ValueError("tls_client_ca needs tls_cert: without TLS there are no certificates")
        self._check_cookie()
        self._check_login()
        if self.durability.startswith("replicas:") and self.redis is None:
            raise ValueError(
                f"durability {self.durability} needs redis: a server's own store has no replicas"
            )
        if self.chat and (
            self.max_channel_length < _CHAT_LENGTH or self.max_channel_segments < _CHAT_SEGMENTS
        ):
            raise ValueError(
                f"the chat's channels have {_CHAT_LENGTH} characters and {_CHAT_SEGMENTS} "
                "segments: allow them, or switch chat off"
            )
        return self

    def _check_login(self) -> None:
        if self.login_header is not None and not self.trusted_proxies:
            raise ValueError("login_header needs trusted_proxies: others could send any header")
        if self.login_groups_header is not None and self.login_header is None:
            raise ValueError("login_groups_header needs login_header")
        if self.login_certificate and self.tls_client_ca is None:
            raise ValueError("login_certificate needs tls_client_ca, which verifies certificates")
        if self.login_issuer is not None and self.login_keys is None:
            _check_url("login_issuer", self.login_issuer)
        if self.login_keys is not None and "://" in self.login_keys:
            _check_url("login_keys", self.login_keys)
        for name in ("login_audience", "login_cookie", "login_key_host", "login_rights_claim"):
            if getattr(self, name) and not self.takes_tokens:
                raise ValueError(f"{name} needs login_keys or login_issuer")
        for name in ("login_anonymous", "rights"):
            if getattr(self, name) and not self.requires_login:
                raise ValueError(
                    f"{name} needs a way to log in: login_keys, login_issuer, login_passwords, "
                    "login_header or login_certificate"
                )

    @property
    def takes_tokens(self) -> bool:
        """Whether clients may log in with tokens."""
        return self.login_keys is not None or self.login_issuer is not None

    @property
    def requires_login(self) -> bool:
        """Whether there is a way to log in, so that clients have to."""
        return (
            self.takes_tokens
            or self.login_passwords is not None
            or self.login_header is not None
            or self.login_certificate
        )

    def _check_cookie(self) -> None:
        """Refuse attributes that the cookie's prefix forbids: browsers would drop it silently."""
        name = (self.browser_cookie_name or "").lower()
        if name.startswith(("__host-", "__secure-")) and not self.is_cookie_secure:
            raise ValueError(
                f"a browser_cookie_name like {name} needs tls_cert or browser_cookie_secure"
            )
        if name.startswith("__host-") and not self.is_cookie_of_host:
            raise ValueError(
                f"a browser_cookie_name like {name} excludes browser_cookie_domain and "
                "browser_cookie_path"
            )

    @property
    def is_cookie_secure(self) -> bool:
        """Whether browsers send the cookie only over TLS."""
        if self.browser_cookie_secure is None:
            return self.tls_cert is not None
        return self.browser_cookie_secure

    @property
    def is_cookie_of_host(self) -> bool:
        """Whether the cookie is for this host only, and for all its paths."""
        return self.browser_cookie_domain is None and self.browser_cookie_path == "/"

    @property
    def hsts_s(self) -> int | None:
        """Seconds for which browsers must use TLS; None if responses have no HSTS header."""
        if self.hsts is None and (self.tls_cert is not None or self.is_cookie_secure):
            return _YEAR_S
        return self.hsts


def read(file: Path | None, given: dict[str, Any]) -> Settings:
    """Read the settings: flags override variables, variables override the file."""
    fields = {f"HOLDFAST_{name.upper()}" for name in Settings.model_fields}
    for name in os.environ:
        is_ours = name.upper().startswith("HOLDFAST_") and not _LINKS.fullmatch(name.upper())
        if is_ours and name.upper() not in fields | OF_THE_COMMAND_LINE:
            raise ValueError(f"{name}: there is no such setting")

    return _reading(file)(**given)


@cache
def _reading(file: Path | None) -> type[Settings]:
    """The settings that are also read from the file."""

    class FromFile(Settings):
        model_config = SettingsConfigDict(toml_file=file)

    return FromFile
