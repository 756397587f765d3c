"""The address of a server and the credentials for it, from a URL."""

import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Self
from urllib.parse import parse_qsl, unquote, urlsplit

_PORT = 6379
# The user in URLs that contain only a password.
DEFAULT_USER = "default"

_VERIFICATIONS = {
    "none": ssl.CERT_NONE,
    "optional": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}
_NO = {"0", "f", "false", "n", "no"}
# TLS options with redis-py's names, because the pipeline gets the same URL.
_TLS_OPTIONS = {
    "ssl_ca_certs",
    "ssl_ca_data",
    "ssl_ca_path",
    "ssl_cert_reqs",
    "ssl_certfile",
    "ssl_check_hostname",
    "ssl_ciphers",
    "ssl_exclude_verify_flags",
    "ssl_include_verify_flags",
    "ssl_keyfile",
    "ssl_min_version",
    "ssl_password",
}


@dataclass(frozen=True, slots=True)
class Address:
    """A Unix socket if `path` is set, else host and port."""

    host: str = "localhost"
    port: int = _PORT
    path: str | None = None
    database: int = 0
    username: str = DEFAULT_USER
    password: str | None = None
    tls: ssl.SSLContext | None = None

    @classmethod
    def of(cls, url: str) -> Self:
        """Parse a redis-py URL. Of its options, only `db` and `ssl_...` are used."""
        parts = urlsplit(url)
        options = dict(parse_qsl(parts.query))
        is_socket = parts.scheme == "unix"
        if not is_socket and parts.scheme not in ("redis", "rediss"):
            raise ValueError("must begin with redis://, rediss:// or unix://")
        if is_socket and not parts.path:
            raise ValueError("unix:// must be followed by a path")
        path = unquote(parts.path)
        name = path.strip("/")
        named = name if not is_socket and name.isdecimal() else 0
        return cls(
            host=parts.hostname or "localhost",
            port=parts.port or _PORT,
            path=path if is_socket else None,
            database=int(options.get("db", named)),
            username=unquote(parts.username or "") or DEFAULT_USER,
            password=unquote(parts.password or "") or None,
            tls=_tls(options) if parts.scheme == "rediss" else None,
        )

    def at(self, host: str, port: int) -> Self:
        """Return the address of another server with the same credentials."""
        return replace(self, host=host, port=port, path=None)

    def __str__(self) -> str:
        """Return the address for logs, without credentials."""
        return self.path or f"{self.host}:{self.port}"


def _tls(options: Mapping[str, str]) -> ssl.SSLContext:
    """Return the TLS context, which verifies the store's certificate and presents ours."""
    given = {name: value for name, value in options.items() if name.startswith("ssl_")}
    if unknown := given.keys() - _TLS_OPTIONS:
        raise ValueError(f"{min(unknown)}: this option does not exist")
    context = ssl.create_default_context()
    mode = _VERIFICATIONS.get(given.get("ssl_cert_reqs", "required"))
    if mode is None:
        raise ValueError(f"ssl_cert_reqs: write one of {', '.join(_VERIFICATIONS)}")
    is_named = given.get("ssl_check_hostname", "yes").lower() not in _NO
    context.check_hostname = is_named and mode is not ssl.CERT_NONE
    context.verify_mode = mode
    for flag in _flags(given.get("ssl_include_verify_flags", "")):
        context.verify_flags |= flag
    for flag in _flags(given.get("ssl_exclude_verify_flags", "")):
        context.verify_flags &= ~flag
    # A certificate file may also contain the key.
    if certificate := given.get("ssl_certfile") or given.get("ssl_keyfile"):
        context.load_cert_chain(certificate, given.get("ssl_keyfile"), given.get("ssl_password"))
    authorities = [given.get(f"ssl_ca_{kind}") for kind in ("certs", "path", "data")]
    if any(authorities):
        context.load_verify_locations(*authorities)
    if "ssl_min_version" in given:
        context.minimum_version = ssl.TLSVersion(int(given["ssl_min_version"]))
    if "ssl_ciphers" in given:
        context.set_ciphers(given["ssl_ciphers"])
    return context


def _flags(names: str) -> Iterator[ssl.VerifyFlags]:
    """Yield the flags of a list like [VERIFY_X509_STRICT, VERIFY_X509_PARTIAL_CHAIN]."""
    for name in filter(None, map(str.strip, names.strip("[]").split(","))):
        flag = ssl.VerifyFlags.__members__.get(name)
        if flag is None:
            raise ValueError(f"{name}: this flag does not exist")
        yield flag
