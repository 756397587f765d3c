"""What an operator can set: flags, `HOLDFAST_*` variables, `holdfast.toml`, in this order."""

import ipaddress
import os
import re
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

from app.delivery.channels import Channels, Kind

Transport = Literal["websocket", "long-polling", "callback-polling"]
Milliseconds = Annotated[int, Field(ge=0)]
Limit = Annotated[int, Field(ge=1)]
# Of the longest channel without which there is no chat.
_CHAT_LENGTH = len("/service/chat/private")
_YEAR_S = 365 * 24 * 3600
_ADDRESS = re.compile(r"(?:[^:\s]+|\[[0-9a-fA-F:]+\]):([0-9]{1,5})")
_HOST_NAME = re.compile(r"\*|(?:\*\.)?(?:[A-Za-z0-9_-]+\.)*[A-Za-z0-9_-]+")
# Paths as they stand in a request: nothing that could be spelt in another way.
_PATH = re.compile(r"(?:/(?!\.\.?(?:/|$))[A-Za-z0-9._~!$&'()*+,;=:@-]+)+")
# The first segments of the server's other paths.
_TAKEN = frozenset({"admin", "chat", "console", "healthz", "readyz", "metrics", "static"})
# What Kubernetes tells the containers beside a Service of this name, in variables like ours.
_LINK = re.compile(r"(?:tcp|udp|sctp)://")
_LINKS = re.compile(
    r"HOLDFAST_(?:SERVICE_HOST|SERVICE_PORT(?:_.+)?|PORT_\d+_(?:TCP|UDP|SCTP)(?:_.+)?)"
)
# What the commands that talk to a running server read.
OF_THE_COMMAND_LINE = frozenset({"HOLDFAST_URL", "HOLDFAST_TOKEN_FILE"})
# What HTTP calls a token: names of cookies and of sub-protocols.
Token = Annotated[str, Field(pattern=r"^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")]


class ChannelSettings(BaseModel):
    """What is special about the channels of a pattern."""

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


class _Environment(EnvSettingsSource):
    """Variables, but for the one in which Kubernetes has a URL for a port."""

    def __call__(self) -> dict[str, Any]:
        found = super().__call__()
        if _LINK.match(str(found.get("port"))):
            del found["port"]
        return found


class Settings(BaseSettings):
    """Every setting, with CometD's names and defaults where it has one; times in milliseconds."""

    model_config = SettingsConfigDict(env_prefix="HOLDFAST_", extra="forbid", frozen=True)

    host: str = Field("127.0.0.1", description="Address to listen on.")
    port: int = Field(8080, ge=0, le=65535, description="Port to listen on; 0 takes a free one.")
    unix: Path | None = Field(None, description="Listen on this Unix socket instead.")
    admin: str | None = Field(
        None,
        description="Address of the administration alone, as HOST:PORT, if not that of the server; "
        "beyond loopback it speaks TLS if the server does.",
    )
    open: bool = Field(False, description="Let anyone in who reaches an address beyond loopback.")
    data: Path = Field(Path("data"), description="Directory that belongs to this server alone.")
    redis: str | None = Field(
        None, description="Redis or Valkey to use, as redis:// URL; none: one of its own in data."
    )
    namespace: str = Field(
        "holdfast", pattern=r"^[a-z0-9-]{1,32}$", description="Deployment, within one Redis."
    )
    node: str = Field(
        "holdfast", pattern=r"^[a-z0-9-]{1,32}$", description="Name of this server in ids."
    )
    durable: Literal["none", "named", "acked"] = Field(
        "named", description="Sessions that are kept in the store."
    )
    journal: bool = Field(True, description="Write down what becomes of every message.")
    journal_age: Milliseconds = Field(
        7 * 24 * 3600 * 1000, description="How long the journal is kept, read or not."
    )
    journal_size: Limit = Field(
        128 * 1024**2, description="Bytes of the journal in the store; then the oldest goes."
    )
    durability: str = Field(
        "everysec",
        pattern=r"^(?:memory|everysec|always|replicas:[1-9])$",
        description="When what is kept is safe: memory, everysec, always, replicas:N.",
    )
    paths: list[str] = Field(["/cometd", "/bayeux"], description="Paths of the Bayeux server.")
    allow_origin: list[str] = Field(
        [], description="Origin of pages that may use this server besides its own; * for all."
    )
    trusted_proxies: list[str] = Field(
        [],
        description="Addresses and networks of proxies whose word on the client's address counts; "
        "unix for whoever connects to the Unix socket.",
    )
    forwarded_header: Literal["X-Forwarded-For", "Forwarded"] = Field(
        "X-Forwarded-For", description="Header in which these proxies say it; the other is ignored."
    )
    host_name: list[str] = Field(
        [],
        description="Name by which clients reach this server, besides localhost, addresses, its "
        "own host and those of allow_origin; *.example.org for all below, * for all.",
    )
    extension: list[str] = Field([], description="Extension to install, as MODULE:FACTORY.")
    tls_cert: Path | None = Field(None, description="Certificate chain; turns TLS on.")
    tls_key: Path | None = Field(None, description="Private key of the certificate.")
    tls_client_ca: Path | None = Field(
        None,
        description="Authorities of client certificates, which are asked for, not required; "
        "extensions see whose they are.",
    )
    fast_lane: bool = Field(True, description="Answer plain requests without aiohttp's machinery.")
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="How much is logged."
    )

    transports: list[Transport] = Field(
        ["websocket", "long-polling"],
        min_length=1,
        description="Transports, the preferred one first; callback-polling (JSONP) is the third.",
    )
    timeout: Milliseconds = Field(30_000, description="How long a connect is held.")
    interval: Milliseconds = Field(0, description="How long clients pause between connects.")
    max_interval: Milliseconds = Field(
        10_000, description="How long a session lives without a connect, beyond the interval."
    )
    max_lazy_timeout: Milliseconds = Field(5_000, description="How long lazy messages wait.")
    meta_connect_deliver_only: bool = Field(
        False, description="Deliver messages with connect replies alone."
    )
    handshake_reconnect: bool = Field(
        False, description="Advise maxInterval, after which clients handshake by themselves."
    )
    allow_message_delivery_during_handshake: bool = Field(
        False, description="Deliver messages together with handshake replies."
    )
    broadcast_to_publisher: bool = Field(
        True, description="Publishers receive their own messages if they subscribed."
    )
    trust_client_session: bool = Field(
        False,
        description="Accept every session's id without its cookie, also browsers' and over HTTP.",
    )
    max_sessions_per_browser: int = Field(
        1, ge=-1, description="Connects held per browser over HTTP; -1 is unlimited."
    )
    multi_session_interval: int = Field(
        2_000, description="Interval for sessions beyond that; 0 refuses them."
    )
    duplicate_meta_connect_http_response_code: int = Field(
        409, ge=400, le=599, description="Status of a connect that a newer one overtook."
    )
    channels: dict[str, ChannelSettings] = Field(
        {}, description="What is special about channels, by pattern."
    )

    delivery: bool = Field(True, description="Offer verdicts on single messages.")
    dead_letter_age: Milliseconds = Field(
        30 * 24 * 3600 * 1000, description="How long dead letters are kept."
    )
    dead_letter_count: Limit = Field(100_000, description="How many dead letters are kept.")
    dead_letter_bytes: Limit = Field(
        256 * 1024**2, description="How many bytes of dead letters are kept."
    )
    dead_letter_share_bytes: Limit = Field(
        64 * 1024**2, description="How many of them for one channel, and for one subject."
    )
    guard: bool = Field(
        True, description="Hold a channel back when nobody takes its messages any more."
    )
    guard_window: int = Field(
        60_000, ge=1_000, description="How long it is remembered who refused messages."
    )
    guard_receivers: Limit = Field(3, description="Receivers that must refuse, at least.")
    guard_messages: int = Field(
        5, ge=1, le=1_000, description="Messages that must be refused, at least."
    )
    guard_retry: int = Field(
        5_000,
        ge=100,
        le=300_000,
        description="Until a held channel is tried again; doubles up to 5 minutes.",
    )

    ack: bool = Field(True, description="Offer acknowledged messages.")
    timesync: bool = Field(True, description="Offer the synchronisation of clocks.")
    chat: bool = Field(True, description="Offer the chat demo at /chat/.")
    timestamp: bool = Field(False, description="Add a timestamp to whatever is sent.")
    max_inactivity: Milliseconds = Field(
        0, description="End sessions that only connect for this long; 0 never."
    )

    browser_cookie_name: Token | None = Field(
        None,
        description="Name of the browser's cookie; by default BAYEUX_BROWSER, with __Host- in "
        "front if it is secure and has neither a domain nor a path.",
    )
    browser_cookie_domain: str | None = Field(
        None, pattern=r"^[A-Za-z0-9.-]+$", description="Its domain."
    )
    browser_cookie_path: str = Field("/", pattern=r"^/[!-:<-~]*$", description="Its path.")
    browser_cookie_max_age: int | None = Field(None, description="Its age in seconds.")
    browser_cookie_secure: bool | None = Field(
        None,
        description="Only over TLS; by default if the server has a certificate. To be set where a "
        "proxy ends TLS.",
    )
    browser_cookie_http_only: bool = Field(True, description="Not for scripts.")
    browser_cookie_same_site: Literal["Strict", "Lax", "None"] | None = Field(
        None, description="From which sites it is sent."
    )
    browser_cookie_partitioned: bool = Field(False, description="One for each embedding site.")

    hsts: int | None = Field(
        None,
        ge=0,
        description="Seconds for which browsers shall use TLS alone with this host (HSTS); 0 ends "
        "it. By default a year, if the server has a certificate or browser_cookie_secure is set.",
    )

    callback_parameter: str = Field(
        "jsonp", min_length=1, description="Query parameter of JSONP's callback."
    )
    callback_parameter_max_length: Limit = Field(64, description="Length of a callback's name.")
    ws_messages_per_frame: int = Field(
        1, ge=-1, description="Messages in one WebSocket frame; -1 puts all into one."
    )
    ws_idle_timeout: Milliseconds = Field(
        300_000, description="Close sockets on which nothing was received for this long; 0 never."
    )
    ws_session_timeout: Limit = Field(
        10_000, description="Close new sockets on which no session was named for this long."
    )
    ws_require_handshake_per_connection: bool = Field(
        False, description="A new socket must begin with a handshake."
    )
    ws_protocol: Token | None = Field(
        None, description="WebSocket sub-protocol that clients must offer."
    )

    max_message_size: Limit = Field(2 * 1024**2, description="Bytes of one message.")
    max_request_size: Limit = Field(4 * 1024**2, description="Bytes of one request, inflated.")
    max_unfinished_bytes: Limit = Field(
        256 * 1024**2,
        description="Bytes of requests that arrive or wait for their turn, all together.",
    )
    max_batch: Limit = Field(5_000, description="Messages in one request.")
    max_depth: int = Field(512, ge=8, le=512, description="Depth of JSON.")
    max_values: Limit = Field(
        75_000,
        description="Values in the JSON of one request; an array or an object counts as two.",
    )
    max_subscriptions: Limit = Field(10_000, description="Subscriptions of one session.")
    max_queue: Limit = Field(10_000, description="Messages waiting for one session.")
    max_queue_bytes: Limit = Field(16 * 1024**2, description="Bytes waiting for one session.")
    max_publish_keys: Limit = Field(
        1_000_000, description="Keys of publishes remembered at one time."
    )
    max_sessions: Limit = Field(100_000, description="Sessions at one time.")
    max_sessions_per_subject: Limit = Field(
        10, description="Named sessions of one subject; a client may ask for fewer."
    )
    max_names_per_browser: Limit = Field(
        100,
        description="Named sessions of one browser cookie, while no policy says who may be whom.",
    )
    max_names_per_address: Limit = Field(
        1_000, description="The same for one address, as trusted_proxies tell it."
    )
    max_session_timeout: Limit = Field(
        24 * 3600 * 1000,
        description="How long a client may let its session wait for it; a policy may grant more.",
    )
    unconnected_share: int = Field(
        50,
        ge=0,
        le=100,
        description="Percent of max_sessions that unconnected sessions keep when places run out; "
        "of what is beyond that the idlest end first.",
    )
    max_channel_length: Limit = Field(1024, description="Length of a channel's name.")
    max_channel_segments: Limit = Field(64, description="Segments of a channel's name.")
    handshake_rate: Limit = Field(20_000, description="Handshakes let in per second.")
    budget_requests: int = Field(
        2_000, ge=0, description="Requests per second of an address or a subject; 0 is no limit."
    )
    budget_handshakes: int = Field(200, ge=0, description="Handshakes, likewise.")
    budget_publishes: int = Field(2_000, ge=0, description="Publishes and calls, likewise.")
    budget_bytes: int = Field(16 * 1024**2, ge=0, description="Bytes of requests, likewise.")
    budget_letters: int = Field(
        200, ge=0, description="Refused messages, which become dead letters, likewise."
    )
    request_timeout: Limit = Field(30_000, description="Allowance for a request to arrive.")
    write_timeout: Limit = Field(30_000, description="How long a client may stop reading.")
    shutdown_timeout: Milliseconds = Field(5_000, description="How long a stop may take.")

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
                raise ValueError(f"{path!r} is the place of something else")
        if not paths or len(set(paths)) < len(paths):
            raise ValueError("at least one path is needed, and none twice")
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
                # Says itself what is wrong: a network has no bits behind its mask.
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
                raise ValueError(f"{pattern!r} is no channel or pattern to publish on")
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
                raise ValueError("must be HOST:PORT, as 127.0.0.1:9000")
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
            raise ValueError("tls_cert and tls_key belong together")
        if self.tls_client_ca is not None and self.tls_cert is None:
            raise ValueError("tls_client_ca needs tls_cert: without TLS there are no certificates")
        self._check_cookie()
        if self.durability.startswith("replicas:") and self.redis is None:
            raise ValueError(
                f"durability {self.durability} needs redis: a server's own store has no replicas"
            )
        if self.chat and (self.max_channel_length < _CHAT_LENGTH or self.max_channel_segments < 3):
            raise ValueError(
                f"the chat's channels have {_CHAT_LENGTH} characters and 3 segments: "
                "allow them, or switch chat off"
            )
        return self

    def _check_cookie(self) -> None:
        """Browsers drop a cookie in silence that is not as its name says."""
        name = (self.browser_cookie_name or "").lower()
        if name.startswith(("__host-", "__secure-")) and not self.is_cookie_secure:
            raise ValueError(
                f"a browser_cookie_name like {name} needs tls_cert or browser_cookie_secure"
            )
        if name.startswith("__host-") and not self.is_cookie_of_host:
            raise ValueError(
                f"a browser_cookie_name like {name} goes with neither browser_cookie_domain "
                "nor browser_cookie_path"
            )

    @property
    def is_cookie_secure(self) -> bool:
        """Whether browsers send the cookie over TLS alone."""
        if self.browser_cookie_secure is None:
            return self.tls_cert is not None
        return self.browser_cookie_secure

    @property
    def is_cookie_of_host(self) -> bool:
        """Whether the cookie is of this host alone, and of all of it."""
        return self.browser_cookie_domain is None and self.browser_cookie_path == "/"

    @property
    def hsts_s(self) -> int | None:
        """How long browsers shall use TLS alone; None if they are told nothing."""
        if self.hsts is None and (self.tls_cert is not None or self.is_cookie_secure):
            return _YEAR_S
        return self.hsts


def read(file: Path | None, given: dict[str, Any]) -> Settings:
    """The settings: what was given on the command line, variables, the file, defaults."""
    fields = {f"HOLDFAST_{name.upper()}" for name in Settings.model_fields}
    for name in os.environ:
        is_ours = name.upper().startswith("HOLDFAST_") and not _LINKS.fullmatch(name.upper())
        if is_ours and name.upper() not in fields | OF_THE_COMMAND_LINE:
            raise ValueError(f"{name}: there is no such setting")

    class FromFile(Settings):
        model_config = SettingsConfigDict(toml_file=file)

    return FromFile(**given)
