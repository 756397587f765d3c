"""Settings of listen addresses, and of the proxies and hosts trusted there."""

import ipaddress
import re
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from holdfast.settings.section import Milliseconds, Section, TimeLimit
from holdfast.units import Unit

_ADDRESS = re.compile(r"(?:[^:\s]+|\[[0-9a-fA-F:]+\]):([0-9]{1,5})")
_HOST_NAME = re.compile(r"\*|(?:\*\.)?(?:[A-Za-z0-9_-]+\.)*[A-Za-z0-9_-]+")
# Paths as they appear in requests, without characters that have several spellings.
_PATH = re.compile(r"(?:/(?!\.\.?(?:/|$))[A-Za-z0-9._~!$&'()*+,;=:@-]+)+")
# The first segments of the server's other paths.
_TAKEN = frozenset(
    {"admin", "chat", "console", "docs", "healthz", "readyz", "metrics", "publish", "static"}
)
# Each shard has at least 15 of the 1,000 parts in which sessions are divided.
MOST_WORKERS = 64


class ServerSettings(Section):
    heading: ClassVar[str] = "Server"

    host: str = Field(default="127.0.0.1", description="Address to listen on.")
    port: int = Field(
        default=8080, ge=0, le=65535, description="Port to listen on; 0 picks a free one."
    )
    unix: Path | None = Field(default=None, description="Listen on this Unix socket instead.")
    admin: str | None = Field(
        default=None,
        description="Separate address for the administration, as HOST:PORT. Beyond loopback it "
        "uses TLS if the server has a certificate.",
    )
    open: bool = Field(
        default=False,
        description="Allow an address beyond loopback: everybody who can reach the port may "
        "connect.",
    )
    paths: list[str] = Field(
        default=["/cometd", "/bayeux"], description="Paths of the Bayeux server."
    )
    allow_origin: list[str] = Field(
        default=[],
        description="Origin whose pages may use this server, besides its own; * allows all.",
    )
    trusted_proxies: list[str] = Field(
        default=[],
        description="Address or network of a proxy that is trusted to report the client's "
        "address; unix trusts all who connect to the Unix socket.",
    )
    forwarded_header: Literal["X-Forwarded-For", "Forwarded"] = Field(
        default="X-Forwarded-For",
        description="Header in which trusted proxies report the client's address; the other one "
        "is ignored.",
    )
    host_name: list[str] = Field(
        default=[],
        description="Host name by which clients reach this server, besides localhost, literal "
        "addresses, host, and the hosts of allow_origin. *.example.org allows all "
        "names below example.org, * allows all.",
    )
    tls_cert: Path | None = Field(default=None, description="Certificate chain; switches TLS on.")
    tls_key: Path | None = Field(default=None, description="Private key of the certificate.")
    tls_client_ca: Path | None = Field(
        default=None,
        description="Certificate authorities for client certificates, which are requested but "
        "not required. Extensions see the subject.",
    )
    hsts: Annotated[int | None, Unit.SECONDS] = Field(
        default=None,
        ge=0,
        description="Seconds for which browsers must use TLS with this host (HSTS); 0 revokes it. "
        "By default a year, if the server has a certificate or "
        "browser_cookie_secure is set.",
    )
    fast_lane: bool = Field(
        default=True,
        description="Answer ordinary POST requests without aiohttp's request handling.",
    )
    restart_timeout: TimeLimit = Field(
        default=60_000,
        description="Time within which a restarted server must be ready. After it, the former one "
        "goes on.",
    )
    frozen_timeout: TimeLimit = Field(
        default=5_000,
        description="Time after which the supervisor kills a silent server that does not run: it "
        "is stopped, waits for a disk, or hangs. Linux only.",
    )
    silent_timeout: TimeLimit = Field(
        default=60_000, description="Time after which the supervisor kills any other silent server."
    )
    request_timeout: TimeLimit = Field(
        default=30_000,
        description="Time within which a request or WebSocket message must arrive completely. "
        "A new connection must send one within this time.",
    )
    publish_timeout: TimeLimit = Field(
        default=30_000,
        description="Time after which the rest of a [`POST /publish`](../how-to/publish.md) is "
        "refused, if "
        "the store is too slow for all of it.",
    )
    streams: bool = Field(
        default=True,
        description="Let channels with a history be read by "
        "[`GET /streams` and `/events`](../how-to/streams.md).",
    )
    write_timeout: TimeLimit = Field(
        default=30_000,
        description="Time for which a client may stop reading before its connection is closed.",
    )
    shutdown_timeout: Milliseconds = Field(
        default=5_000, description="Maximum time for an orderly stop."
    )
    supervisor: bool = Field(
        default=True,
        description="Run the server below a supervisor, which starts it again if it ends, and "
        "replaces it at a restart while clients stay connected.",
    )
    workers: int | Literal["auto"] = Field(
        default=1,
        description="Number of processes that share the work, each with the sessions and messages "
        "of one shard; auto is one for each processor. It cannot change later. Beyond 1 it needs "
        "the supervisor.",
    )
    shards: int | None = Field(
        default=None,
        ge=1,
        le=MOST_WORKERS,
        description="Number of shards of a new deployment; as many as workers, which is the "
        "default. With hosts, the number on all machines together.",
    )
    own_port: int | None = Field(
        default=None,
        ge=1,
        le=65535 - MOST_WORKERS,
        description="First of the ports at which each of several workers listens alone, besides "
        "port: the worker of shard 2 at own_port + 2. For proxies that know whose a client is.",
    )
    alerts: Path | None = Field(
        default=None,
        description="File with the limits of alerts; it is read again when it has changed.",
    )
    otlp: str | None = Field(
        default=None,
        pattern=r"^https?://[^/\s]+(?:/\S*)?$",
        description="URL of an OpenTelemetry collector, such as http://127.0.0.1:4318, that gets "
        "[spans](../how-to/tracing.md) of what happens to messages with a traceparent.",
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="Lowest level that is logged."
    )

    @property
    def request_timeout_s(self) -> float:
        return self.request_timeout / 1000

    @field_validator("workers", mode="before")
    @classmethod
    def _check_workers(cls, workers: object) -> int | str:
        text = str(workers)
        if text == "auto" or (text.isdecimal() and 1 <= int(text) <= MOST_WORKERS):
            return text if text == "auto" else int(text)
        raise ValueError(f"must be a number from 1 to {MOST_WORKERS}, or auto")

    @field_validator("paths")
    @classmethod
    def _check_paths(cls, paths: list[str]) -> list[str]:
        for path in paths:
            if _PATH.fullmatch(path) is None:
                raise ValueError(f"{path!r} must begin with a slash and not end with one")
            if path.split("/")[1] in _TAKEN:
                raise ValueError(
                    f"{path!r} is used by another part of the server: choose another path"
                )
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
                try:
                    ipaddress.ip_network(proxy)
                except ValueError as error:
                    # It says what is wrong, such as bits behind the mask.
                    raise ValueError(f"{error}: write an address, a network or unix") from None
        return proxies

    @field_validator("host_name")
    @classmethod
    def _check_host_names(cls, names: list[str]) -> list[str]:
        for name in names:
            if _HOST_NAME.fullmatch(name) is None:
                raise ValueError(f"{name!r} must be like push.example.org, *.example.org or *")
        return names

    @field_validator("admin")
    @classmethod
    def _check_admin(cls, address: str | None) -> str | None:
        if address is not None:
            found = _ADDRESS.fullmatch(address)
            if found is None or int(found[1]) > 65535:
                raise ValueError("must be HOST:PORT, such as 127.0.0.1:9000")
        return address

    @model_validator(mode="after")
    def _check_own_port(self) -> Self:
        if self.own_port is not None and self.unix is not None:
            raise ValueError("own_port needs port: set it without unix")
        return self

    @model_validator(mode="after")
    def _check_tls(self) -> Self:
        if (self.tls_cert is None) != (self.tls_key is None):
            raise ValueError("tls_cert and tls_key need each other: set both, or neither")
        if self.tls_client_ca is not None and self.tls_cert is None:
            raise ValueError("tls_client_ca needs tls_cert: without TLS there are no certificates")
        return self
