"""Which settings all machines of a deployment must have alike, and a digest of what they say."""

from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Final

import orjson

if TYPE_CHECKING:
    from holdfast.settings import Settings

# What concerns one machine alone: its addresses, files and names, how it restarts and logs. The URL
# of the store may be written in several ways.
MAY_DIFFER: Final = frozenset(
    [
        *("host", "port", "unix", "admin", "own_port", "host_name"),
        *("own_host", "capacity", "node", "data", "redis"),
        *("tls_cert", "tls_key", "tls_client_ca", "hsts", "link_cert", "link_key", "link_ca"),
        *("trusted_proxies", "forwarded_header", "alerts", "otlp", "log_level", "fast_lane"),
        *("restart_timeout", "frozen_timeout", "silent_timeout", "shutdown_timeout"),
        *("supervisor", "workers", "standby"),
    ]
)
# Files of which the content counts, and not the name.
BY_CONTENT: Final = ("rights", "login_passwords", "login_keys")


def agreement(settings: "Settings") -> str:
    """Return a digest of what must be alike. It reads files."""
    found = blake2b(digest_size=8)
    own = MAY_DIFFER.union(BY_CONTENT)
    said = settings.model_dump(mode="json", exclude={*own})
    found.update(orjson.dumps(said, option=orjson.OPT_SORT_KEYS))
    for name in BY_CONTENT:
        found.update(f"\0{name}\0".encode() + _content(getattr(settings, name)))
    return found.hexdigest()


def _content(place: Path | str | None) -> bytes:
    """Return what a file has; of a URL or a file that cannot be read, its name."""
    if place is None:
        return b""
    try:
        return Path(place).read_bytes()
    except OSError:
        return str(place).encode()
