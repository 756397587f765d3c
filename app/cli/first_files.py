"""The files with which a server begins: its settings, its first login, and what runs it."""

import os
import stat
import sys
import textwrap
from dataclasses import dataclass
from enum import StrEnum
from importlib.resources import files
from pathlib import Path
from typing import Any

import orjson

from holdfast.cli.model_options import without_links
from holdfast.settings import OFTEN_SET, Settings

SETTINGS, USERS, RIGHTS = "holdfast.toml", "users", "rights.toml"
# Where a container has them.
_MOUNTED, _KEPT = Path("/etc/holdfast"), Path("/data")
_PORT, _ADMIN_PORT = 8080, 8081
# The user of the image; root gives it the files of a container.
_USER_OF_IMAGE = 10001
_WIDTH = 98
_UNIT = "holdfast.service"
_SERVICE_USER = "holdfast"
_COMPOSE = "docker-compose.yml"
# What a unit shows to a service only if it says so.
_HOMES = (Path("/home"), Path("/root"))
_EVERYWHERE = ("0.0.0.0", "::")  # noqa: S104 - what people write for all addresses
# What settings without a default look like.
_EXAMPLES: dict[str, Any] = {
    "host_name": ["push.example.org"],
    "allow_origin": ["https://app.example.org"],
    "trusted_proxies": ["127.0.0.1"],
    "tls_cert": "fullchain.pem",
    "tls_key": "privkey.pem",
    "admin": "127.0.0.1:8081",
    "redis": "redis://127.0.0.1:6379/0",
    "channels": {"/orders/**": {"history": 100}},
    "login_passwords": USERS,
    "login_keys": "token-key",
    "rights": RIGHTS,
}


class RunBy(StrEnum):
    """What starts the server."""

    TERMINAL = "terminal"
    SYSTEMD = "systemd"
    COMPOSE = "compose"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a server is to be."""

    home: Path
    host: str
    port: int
    host_names: tuple[str, ...]
    # The first user, an operator; None without a login.
    user: str | None
    run_by: RunBy

    @property
    def is_reachable(self) -> bool:
        """Whether others than this machine are to reach it."""
        return not (self.host.startswith("127.") or self.host in ("localhost", "::1"))


def files_of(wanted: Wanted) -> dict[str, str]:
    """Return the text of each file except the file of users."""
    found = {SETTINGS: settings_text(_settings(wanted))}
    if wanted.user is not None:
        found[RIGHTS] = _rights(wanted.user)
    if wanted.run_by is RunBy.SYSTEMD:
        found[_UNIT] = _unit(wanted.home)
    elif wanted.run_by is RunBy.COMPOSE:
        found[_COMPOSE] = _compose(wanted)
    return found


def steps_of(wanted: Wanted) -> list[str]:
    """Return the commands to run next."""
    home = wanted.home
    if wanted.run_by is RunBy.COMPOSE:
        return [
            "docker build --tag holdfast PATH_TO_THE_SOURCES",
            f"docker compose --project-directory {home} up",
        ]
    if wanted.run_by is RunBy.TERMINAL:
        return [f"holdfast serve --config {home / SETTINGS}"]
    own = (
        []
        if _user() != _SERVICE_USER
        else ["useradd --system --shell /usr/sbin/nologin holdfast", f"chown -R holdfast: {home}"]
    )
    return [*own, f"systemctl enable --now {home / _UNIT}"]


def settings_text(given: dict[str, Any]) -> str:
    """Return a settings file: what is given, and the others that people set as comments."""
    lines = [
        "# Settings of the server; those behind a # are off, or have their default. All of them:",
        "# holdfast serve --help",
    ]
    for name in OFTEN_SET:
        field = Settings.model_fields[name]
        text = without_links(field.description or "")
        lines += ["", *textwrap.wrap(text, _WIDTH, initial_indent="# ", subsequent_indent="# ")]
        shown = _EXAMPLES.get(name, field.get_default())
        lines.append(
            f"{name} = {_toml(given[name])}" if name in given else f"# {name} = {_toml(shown)}"
        )
    return "\n".join(lines) + "\n"


def _settings(wanted: Wanted) -> dict[str, Any]:
    home, is_container = wanted.home, wanted.run_by is RunBy.COMPOSE
    place = _MOUNTED if is_container else home
    found: dict[str, Any] = {
        "host": _EVERYWHERE[0] if is_container else wanted.host,
        "port": _PORT if is_container else wanted.port,
        "data": str(_KEPT if is_container else home / "data"),
    }
    if wanted.host_names:
        found["host_name"] = [*wanted.host_names]
    if is_container:
        # The port is published for this machine only.
        found["admin"] = f"{_EVERYWHERE[0]}:{_ADMIN_PORT}"
    elif wanted.is_reachable:
        found["admin"] = f"127.0.0.1:{wanted.port + 1}"
    if wanted.user is not None:
        found |= {"login_passwords": str(place / USERS), "rights": str(place / RIGHTS)}
    elif is_container or wanted.is_reachable:
        found["open"] = True
    return found


def _rights(user: str) -> str:
    return f"""\
# Who may do what; a change is in force within a second. To try one:
# holdfast rights explain {user} publish /news --file {RIGHTS}

# Whoever has logged in may do everything with messages.
[[rule]]
who = ["*"]
may = ["all"]
channels = ["/**"]

# Who may use the console and the administration. Readers may only look.
[administration]
operators = [{_toml(user)}]
readers = []
"""


def _unit(home: Path) -> str:
    """Return the unit of this project, for this environment and folder."""
    text = files("holdfast.cli").joinpath(_UNIT).read_text("utf-8")
    serve = f"{sys.executable} -P -m holdfast serve --config {home / SETTINGS}"
    changes = {
        "/opt/holdfast/bin/python -P -m holdfast serve --data /var/lib/holdfast": serve,
        "/opt/holdfast/bin/holdfast restart --data /var/lib/holdfast": f"{sys.executable} -P "
        f"-m holdfast restart --data {home / 'data'}",
        "User=holdfast": f"User={_user()}",
        "StateDirectory=holdfast\nStateDirectoryMode=0700": f"ReadWritePaths={home / 'data'}",
        "WorkingDirectory=/var/lib/holdfast": f"WorkingDirectory={home / 'data'}",
    }
    if any(map(_is_in_a_home, _places(home))):
        changes["ProtectHome=yes"] = "ProtectHome=read-only"
    for old, new in changes.items():
        if old not in text:
            raise LookupError(f"{_UNIT} has no {old!r}")
        text = text.replace(old, new)
    return text


def _is_in_a_home(place: Path) -> bool:
    return any(place.is_relative_to(each) for each in _HOMES)


def _places(home: Path) -> tuple[Path, ...]:
    """Return what the service must see: the folder, and this environment with its Python."""
    python = Path(sys.executable)
    return (home.resolve(), python, python.resolve(), Path(sys.base_prefix).resolve())


def closed_to_the_service(home: Path) -> str | None:
    """Say what the unit's user could not enter, and what to do: a unit of root runs as another."""
    if _user() != _SERVICE_USER:
        return None
    for place in filter(_is_in_a_home, _places(home)):
        for folder in reversed(place.parents):
            if folder.is_dir() and not folder.stat().st_mode & stat.S_IXOTH:
                return (
                    f"{place} is in {folder}, which only its owner may enter, and the server runs "
                    f"as the user {_SERVICE_USER}: install Holdfast with a Python of the system in "
                    "/opt/holdfast, and choose a folder such as /srv/holdfast"
                )
    return None


def _user() -> str:
    """Return the user that runs the server: never root."""
    import pwd

    number = os.getuid()
    return pwd.getpwuid(number).pw_name if number else _SERVICE_USER


def owner_in_container() -> int:
    """Return the user id that the server has in its container."""
    return os.getuid() or _USER_OF_IMAGE


def _compose(wanted: Wanted) -> str:
    host = f"[{wanted.host}]" if ":" in wanted.host else wanted.host
    owner = owner_in_container()
    return f"""\
services:
  holdfast:
    # docker build --tag holdfast PATH_TO_THE_SOURCES
    image: holdfast
    command: ["holdfast", "serve", "--config", "{_MOUNTED / SETTINGS}"]
    # The owner of the files beside this one.
    user: "{owner}:{os.getgid() or owner}"
    ports:
      - "{host}:{wanted.port}:{_PORT}"
      # The administration and the console, for this machine only: tokens need TLS elsewhere.
      - "127.0.0.1:{wanted.port + 1}:{_ADMIN_PORT}"
    volumes:
      - ".:{_MOUNTED}:ro"
      - "./data:{_KEPT}"
    restart: unless-stopped
    # Longer than the server's shutdown_timeout, so that the server is never killed while it stops.
    stop_grace_period: 10s
    ulimits:
      nofile: 65536
    read_only: true
    tmpfs:
      - /tmp
    cap_drop:
      - ALL
    security_opt:
      - no-new-privileges:true
"""


def _toml(value: Any) -> str:  # noqa: ANN401 - what a setting may be
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_toml(key)} = {_toml(each)}" for key, each in value.items()) + "}"
    # JSON's texts, numbers and lists are TOML's, too.
    return orjson.dumps(value, default=str).decode().replace('","', '", "')
