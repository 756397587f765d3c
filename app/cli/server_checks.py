"""Checks what a server needs on this machine, for `holdfast doctor`."""

import asyncio
import os
import platform
import resource
import secrets
import shutil
import socket
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack
from importlib.metadata import version
from pathlib import Path

from holdfast.bayeux.state.backend_figures import Action
from holdfast.bayeux.wire.caller import UNKNOWN
from holdfast.cli.file_checks import check_files
from holdfast.compose.cannot_start import CannotStart
from holdfast.compose.data_directory import DirectoryTaken, own_directory
from holdfast.compose.placement import data_of
from holdfast.compose.workers import allowance, count_of, reason_of, stored_here
from holdfast.distribution import NAME, clash, core, release
from holdfast.login.failures import SaysNo
from holdfast.pipeline.doctor import Check
from holdfast.settings import Settings
from holdfast.settings.login import BackendSettings
from holdfast.store.format.keys import RedisKeys
from holdfast.store.format.layouts import LAYOUT, later_than, readers_of
from holdfast.store.links.connection import REMEDY, StoreUnavailable
from holdfast.store.links.failover_risks import failover_risks
from holdfast.store.links.primary import Primary
from holdfast.store.links.reader import Reader
from holdfast.store.links.resp import Unusable
from holdfast.store.links.url import StoreUrl
from holdfast.store.local.embedded import server_binary
from holdfast.store.local.home import Home
from holdfast.web.http import aiohttp_parts

_OLDEST = (3, 11)
_TIMEOUT_S = 3.0
# Each client needs one, and the server a hundred.
_FEW_FILES = 10_000
_LITTLE_SPACE = 1024**3
_COMPILERS = ("cc", "gcc", "clang")


def check_server(settings: Settings) -> Iterator[Check]:
    """Check everything that the server with these settings needs."""
    yield _python()
    yield _name()
    yield _core()
    yield _aiohttp()
    yield from _store(settings)
    yield from asyncio.run(_unfinished_upgrade(settings))
    directory = _data_directory(settings.data)
    yield directory
    yield _space(settings.data)
    yield _address(settings, is_running=directory.ok is None)
    yield _files()
    yield from _workers(settings)
    yield from check_files(settings)
    if settings.backend is not None:
        yield asyncio.run(_backend(settings, settings.backend))


def check_sources() -> Iterator[Check]:
    """Check what only a build from the sources needs."""
    compiler = next(filter(None, map(shutil.which, _COMPILERS)), None)
    advice = "none: install gcc and Python's headers (apt install gcc python3-dev) to compile"
    yield Check("C compiler", True if compiler else None, compiler or advice)
    npm = shutil.which("npm")
    yield Check(
        "npm", True if npm else None, npm or "none: install Node.js (apt install npm) to build"
    )


def _python() -> Check:
    text = f"{platform.python_version()} in {sys.executable}"
    is_new = sys.version_info >= _OLDEST
    return Check("Python", is_new, text if is_new else f"{text}: install 3.11 or newer")


def _name() -> Check:
    fault = clash()
    return Check("package", fault is None, fault or f"{NAME} {release()}")


def _core() -> Check:
    kind = core()
    if kind == "compiled":
        return Check("core", True, kind)
    wheel = f"cp{sys.version_info.major}{sys.version_info.minor} and {sysconfig.get_platform()}"
    text = (
        f"{kind}: it does the same, with at least a fifth fewer deliveries for each second of "
        f"processor time. For the compiled one, install the release's wheel for {wheel}, or its "
        "holdfast_bayeux-*.tar.gz where a C compiler is found"
    )
    return Check("core", None, text)


def _aiohttp() -> Check:
    text = version("aiohttp")
    if aiohttp_parts.is_supported():
        return Check("aiohttp", True, text)
    advice = "not the tested version, so requests cost more: reinstall holdfast"
    return Check("aiohttp", None, f"{text}, {advice}")


def _store(settings: Settings) -> Iterator[Check]:
    if settings.redis is None:
        yield _embedded()
    else:
        yield from asyncio.run(_remote(settings.redis, settings))


def _embedded() -> Check:
    try:
        binary = server_binary()
        done = subprocess.run(  # noqa: S603 - the binary of an installed package
            [binary, "--version"], capture_output=True, text=True, timeout=_TIMEOUT_S, check=True
        )
    except StoreUnavailable as error:
        return Check("store", False, str(error))
    except (OSError, subprocess.SubprocessError) as error:
        text = f"the embedded Valkey does not run ({error}): set redis to a Redis or Valkey"
        return Check("store", False, text)
    words = [word for word in done.stdout.split() if word.startswith("v=")]
    return Check("store", True, f"embedded Valkey {''.join(words).removeprefix('v=')}")


async def _remote(url: str, settings: Settings) -> list[Check]:
    try:
        primary = Primary(StoreUrl.of(url), RedisKeys(settings.namespace).meta)
    except (ValueError, OSError) as error:
        return [Check("store", False, f"redis: {error}")]
    try:
        risks = await failover_risks(primary, settings.durability)
    except Unusable as error:
        return [Check("store", False, f"{primary} {error}: {REMEDY}")]
    return [
        Check("store", True, f"{primary} answers"),
        *(Check("failover", None, risk) for risk in risks),
    ]


async def _unfinished_upgrade(settings: Settings) -> list[Check]:
    """Say that the store waits for the end of an upgrade. An embedded store must be running."""
    url = settings.redis or Home(settings.data).url
    try:
        meta = RedisKeys(settings.namespace).meta
        reader = Reader(Primary(StoreUrl.of(url), meta))
        found = await reader.ask("HGET", meta, "version")
        reader.close()
    except (StoreUnavailable, ValueError, OSError):
        return []
    layout = LAYOUT if found is None else int(found)
    if not later_than(layout):
        return []
    text = (
        f"the store has layout {layout}, so you can go back to releases "
        f"{readers_of(layout) or 'before this one'}. If you will not, run holdfast upgrade --finish"
    )
    return [Check("upgrade", None, text)]


def _data_directory(path: Path) -> Check:
    """A directory in use has `ok` None: a server is running there."""
    if not path.exists():
        parent = next(each for each in path.absolute().parents if each.exists())
        if os.access(parent, os.W_OK | os.X_OK):
            return Check("data directory", True, f"{path} will be created")
        text = f"{path} cannot be created in {parent}: set data to another directory"
        return Check("data directory", False, text)
    try:
        with own_directory(path):
            return Check("data directory", True, str(path))
    except DirectoryTaken:
        return Check("data directory", None, f"{path} belongs to a running server")
    except CannotStart as error:
        # The check has the name of the setting.
        return Check("data directory", False, str(error).removeprefix("data "))


def _space(path: Path) -> Check:
    place = next(each for each in (path.absolute(), *path.absolute().parents) if each.exists())
    free = shutil.disk_usage(place).free
    text = f"{free / _LITTLE_SPACE:.1f} GiB free"
    if free >= _LITTLE_SPACE:
        return Check("disk", True, text)
    return Check("disk", None, f"{text}: the store and the journal may need more")


def _address(settings: Settings, *, is_running: bool) -> Check:
    if settings.unix is not None:
        return Check("address", True, f"unix:{settings.unix}")
    place = f"{settings.host}:{settings.port}"
    try:
        socket.create_server((settings.host, settings.port)).close()
    except OSError as error:
        if is_running:
            return Check("address", True, f"{place} seems to be used by the running server")
        reason = os.strerror(error.errno) if error.errno else error
        text = f"{place} cannot be used ({reason}): set host or port, such as --port 8081"
        return Check("address", False, text)
    return Check("address", True, f"{place} is free")


def _workers(settings: Settings) -> Iterator[Check]:
    stored = stored_here(settings.data) if settings.redis is None else None
    if settings.workers == 1 and stored in (None, 1):
        return
    try:
        count = count_of(settings, is_supervised=settings.supervisor, stored=stored)
    except CannotStart as error:
        yield Check("workers", False, str(error).removeprefix("workers: "))
        return
    if stored not in (None, count):
        text = f"the deployment in {settings.data} has {stored}: set workers to {stored}"
        yield Check("workers", False, f"{text}, or run holdfast reshard --shards {count}")
    else:
        yield _number_of_workers(settings, count, stored)
    for shard in range(1, stored or 1):
        found = _data_directory(data_of(settings.data, shard))
        yield found._replace(name=f"shard {shard}")


def _number_of_workers(settings: Settings, count: int, stored: int | None) -> Check:
    text, found = f"{count}, each with a shard", allowance()
    if settings.workers == "auto":
        text += f": {reason_of(settings, stored)}"
    if count > found.workers:
        return Check("workers", None, f"{text}; {found}, so they share processors or memory")
    return Check("workers", True, text)


async def _backend(settings: Settings, backend: BackendSettings) -> Check:
    """Ask the application about a client that shows nothing, as the server would."""
    from holdfast.compose.backend import open_backend
    from holdfast.login.backend.logins import BackendLogins
    from holdfast.login.backend.questions import Unclear, login_in, question
    from holdfast.web.outgoing.signed_posts import Unanswered

    logins = BackendLogins.of(backend)
    async with AsyncExitStack() as stack:
        await open_backend(settings, backend, logins, {settings.port}, stack)
        assert logins.asking.post is not None
        asked, id = question(Action.HANDSHAKE, UNKNOWN, {}), f"ask_{secrets.token_hex(12)}"
        try:
            login = login_in(await logins.asking.post(id, asked.body, asked.headers), time.time())
        except (Unanswered, Unclear) as why:
            return Check("backend", False, f"{backend.origin}: {why}")
        except SaysNo:
            text = "answers, and refuses a client without credentials, or our secret"
            return Check("backend", True, f"{backend.origin} {text}")
    text = f"answers: a client without credentials is {login.subject}"
    return Check("backend", True, f"{backend.origin} {text}")


def _files() -> Check:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    text = f"at most {hard}" if hard != resource.RLIM_INFINITY else "no limit"
    if hard == resource.RLIM_INFINITY or hard >= _FEW_FILES:
        return Check("open files", True, text)
    advice = "each client needs one. Raise it with ulimit -Hn, LimitNOFILE= or --ulimit nofile="
    return Check("open files", None, f"{text}: {advice}")
