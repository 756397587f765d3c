"""`holdfast serve`: runs the server."""

import asyncio
import gc
import logging
import os
import resource
import shlex
import signal
import sys
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import orjson
import uvloop
from pydantic import BaseModel, ValidationError

from holdfast import logs, settings
from holdfast.cli.flags import ConfigFile, GivenSettings
from holdfast.cli.output import complain
from holdfast.cli.program import Program, WithManyOptions
from holdfast.compose import CannotStart, Dismissed, running
from holdfast.compose.placement import NO_SHARD, Placement, alone
from holdfast.compose.succession import Succession
from holdfast.distribution import clash
from holdfast.settings import BackendSettings, ChannelSettings, Settings, WebhookSettings
from holdfast.settings.environment import LIST
from holdfast.store.links.connection import StoreUnavailable
from holdfast.store.opening.asking_to_open import ShardElsewhere
from holdfast.supervisor.control import Channel, Say, given_channel, reason
from holdfast.web.admin.tokens import OPERATOR_FILE

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from holdfast.compose.running_server import RunningServer
    from holdfast.compose.shardless_door import RunningDoor
    from holdfast.compose.supervised import Supervised

log = logging.getLogger(__name__)

# What settings with a pattern may be.
_NAME = "write up to 32 lower-case letters, digits and dashes"
_FORMS = {
    "deployment": "write up to 16 lower-case letters and digits",
    "docs_url": "write /docs/, a URL that ends in a slash, or nothing",
    "durability": "write memory, everysec, always, or replicas:N with N from 1 to 9",
    "namespace": _NAME,
    "node": _NAME,
}
_PLAINLY = {
    "bool_parsing": "write true or false",
    "int_parsing": "write a whole number, such as 30000, without a unit",
    "int_type": "write a whole number, without quotes",
}
_DEFAULT_FILE = Path("holdfast.toml")
# The settings that are tables, and what is in their rows.
_TABLES: dict[object, type[BaseModel]] = {
    "backend": BackendSettings,
    "channels": ChannelSettings,
    "webhooks": WebhookSettings,
}
# In bytes. The C library keeps up to twice as much free memory.
_LARGEST_FREED = 4 * 1024 * 1024


program = Program()


@program.command(cls=WithManyOptions)
def serve(*, config: ConfigFile = None, given: GivenSettings) -> None:
    """Run the server until SIGTERM or SIGINT.

    MS is a time in milliseconds. Each option but --config is also an environment variable
    (--max-queue is HOLDFAST_MAX_QUEUE) and a key of the settings file (max_queue). An option that
    takes a list may be repeated. The server exits with 0 once it has stopped, and with 2 if it
    cannot start.

    Example: holdfast serve --port 9000 --data /var/lib/holdfast --max-queue 500
    """
    # Nothing that was imported becomes garbage; to look for some takes a tenth of the start.
    gc.freeze()
    # It is taken out of the environment, which is read as settings.
    channel = given_channel()
    with telling_failures(channel):
        if fault := clash():
            raise CannotStart(fault)
        found = read_settings(config, given)
        logs.configure(found.log_level, host=found.own_host)
        _raise_limit_of_files()
        keep_freed_memory()
        uvloop.run(_serve(found) if channel is None else _serve_supervised(found, channel))


@contextmanager
def telling_failures(channel: Channel | None = None) -> Iterator[None]:
    """End the program with an error if it cannot start; the supervisor, too, learns why."""
    try:
        yield
    except ShardElsewhere as error:
        # The supervisor knows it.
        log.info("%s", error)
        sys.exit(2)
    except (CannotStart, StoreUnavailable) as error:
        lines = str(error).split("\n")
        if channel is not None:
            with suppress(ConnectionError):
                channel.send(say=Say.FAILED, why=reason("; ".join(lines)))
        for line in lines:
            complain(line, "holdfast cannot start:")
        sys.exit(2)
    except Exception as error:
        if channel is not None:
            notes = getattr(error, "__notes__", ())
            why = "; ".join([f"{type(error).__name__}: {error}", *notes])
            with suppress(ConnectionError):
                channel.send(say=Say.FAILED, why=reason(why))
        raise


def keep_freed_memory() -> None:
    """Let the C library keep the memory of large responses for the next ones.

    It returns what is free at the end of its heap to the system, if that is more than twice the
    largest block that was ever freed, which is small in a new process. Then every burst of large
    responses has to get its pages again, which takes a quarter of the processor time.
    """
    bytes(_LARGEST_FREED)


def read_settings(config: Path | None, given: dict[str, Any]) -> Settings:
    """Return the settings from all sources. Raises `CannotStart`, with a line for each fault."""
    if config is not None and not config.is_file():
        raise CannotStart(f"config: the file {config} does not exist")
    file = config or (_DEFAULT_FILE if _DEFAULT_FILE.is_file() else None)
    try:
        return settings.read(file, {name: _read_table(name, given[name]) for name in given})
    except ValidationError as error:
        raise CannotStart("\n".join(_complaint(fault) for fault in error.errors())) from error
    except ValueError as error:
        raise CannotStart(str(error)) from error


def _read_table(name: str, value: Any) -> Any:
    """Return the value of a flag, which is JSON for tables."""
    if name not in _TABLES:
        return value
    try:
        return orjson.loads(value)
    except orjson.JSONDecodeError as error:
        raise CannotStart(f"{name}: not JSON: {error}") from error


def _complaint(fault: Any) -> str:
    setting = ".".join(str(part) for part in fault["loc"])
    text = fault["msg"].removeprefix("Value error, ")
    if fault["type"] == "extra_forbidden":
        from holdfast.settings.suggestion import at_top, did_you_mean, in_table

        *place, name = fault["loc"]
        known = (_TABLES[place[0]] if place else Settings).model_fields
        other = at_top(name, Settings.model_fields) if place else in_table(name, known)
        text = f"this setting does not exist{other or did_you_mean(name, known)}"
    elif fault["type"] in _PLAINLY:
        text = _PLAINLY[fault["type"]]
    elif fault["type"] == "list_type":
        text += f": write {LIST}"
    elif fault["type"] == "string_pattern_mismatch":
        text = _FORMS.get(setting, text)
    return f"{setting}: {text}" if setting else text


def _raise_limit_of_files() -> None:
    """Raise the limit of open files as far as the system allows: each client needs a socket."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


async def _serve(found: Settings) -> None:
    if found.workers != 1:
        from holdfast.compose.workers import count_of

        count_of(found, is_supervised=False)
    reloads = found.tls_cert is not None and not _has_terminal()
    stopped, reloaded = asyncio.Event(), asyncio.Event()
    _set_by(_stop_signals(reloads=reloads), stopped)
    if reloads:
        # A standby that waits must not end by it.
        _set_by([signal.SIGHUP], reloaded)
    token = (found.data / OPERATOR_FILE).absolute()
    is_first_start = not token.exists()
    with suppress(Dismissed):
        async with running(found, Succession(stopped)) as server:
            if reloads:
                asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, server.reload)
            if reloaded.is_set():
                server.reload()
            _welcome(found, server.url, token if is_first_start else None)
            await stopped.wait()


async def _serve_supervised(found: Settings, channel: Channel) -> None:
    """Serve until the supervisor, or its end, says otherwise."""
    # SIGHUP is the supervisor's.
    stopped = asyncio.Event()
    _set_by([signal.SIGTERM, signal.SIGINT], stopped)
    from holdfast.compose.supervised import Supervised

    supervisor = Supervised(channel, stopped)
    await supervisor.begin()
    if found.hosts and not supervisor.shard and not supervisor.is_stand_in:
        from holdfast.compose.claiming import claim_shards
        from holdfast.supervisor.titles import CLAIMER, name_process

        name_process(CLAIMER)
        token = (found.data / OPERATOR_FILE).absolute()
        is_new = not token.exists()
        welcome = partial(_welcome, found, new_token=token if is_new else None)
        await claim_shards(found, supervisor, stopped, welcome)
        return
    placement = alone(found)
    if found.workers != 1 or supervisor.shard:
        from holdfast.compose.workers import place_of

        placement = await place_of(found, supervisor)
    if not placement.is_alone and placement.number != NO_SHARD:
        logs.configure(found.log_level, shard=placement.number, host=found.own_host)
    _name_process(supervisor, placement)
    if supervisor.is_stand_in:
        from holdfast.compose.standing_in import standing_in

        async with standing_in(found, supervisor):
            ends = [asyncio.create_task(each) for each in (supervisor.ended(), stopped.wait())]
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        return
    with suppress(Dismissed):
        await _serve_in(found, supervisor, placement, stopped)


async def _serve_in(
    found: Settings, supervisor: "Supervised", placement: Placement, stopped: asyncio.Event
) -> None:
    """Serve in a place until somebody says otherwise. Raises `Dismissed` if it never served."""
    from holdfast.compose.supervised import LIMITS, do_as_asked

    token = (found.data / OPERATOR_FILE).absolute()
    is_first_start = not token.exists()
    async with AsyncExitStack() as stack:
        with supervisor.starting():
            server = await stack.enter_async_context(_running(found, supervisor, placement))
        welcome = partial(_welcome, found, server.url, token if is_first_start else None)
        supervisor.welcome = welcome
        limits = {name: getattr(found, name) / 1000 for name in LIMITS}
        # A script that waits for the welcome may ask for a restart at once.
        supervisor.ready(url=server.url, limits=limits)
        if supervisor.is_first and placement.is_alone:
            welcome()
        asked = asyncio.create_task(do_as_asked(supervisor, server))
        ended = asyncio.create_task(stopped.wait())
        await asyncio.wait([asked, ended], return_when=asyncio.FIRST_COMPLETED)
        if not asked.done():
            # In the midst of a leave, this takes everything back.
            asked.cancel()
            await asyncio.wait([asked])
        if server.has_left or (not asked.cancelled() and asked.result()):
            _leave_at_once()


def _running(
    found: Settings, supervisor: "Supervised", placement: Placement
) -> "AbstractAsyncContextManager[RunningServer | RunningDoor]":
    if placement.number != NO_SHARD:
        return running(found, supervisor, placement)
    from holdfast.compose.shardless_door import running_door

    return running_door(found, supervisor, placement)


def _name_process(supervisor: "Supervised", placement: Placement) -> None:
    # A server without a supervisor keeps the name of its program.
    from holdfast.supervisor.titles import DOOR, SERVER, STAND_IN, name_process, server_of

    if supervisor.is_stand_in:
        name_process(STAND_IN)
    elif placement.number == NO_SHARD:
        name_process(DOOR)
    else:
        name_process(SERVER if placement.is_alone else server_of(placement.number))


def _has_terminal() -> bool:
    # A server without TLS does not need to know.
    from holdfast.supervisor.system import has_terminal

    return has_terminal()


def _set_by(signals: list[signal.Signals], event: asyncio.Event) -> None:
    """Have an event set by each of these signals."""
    loop = asyncio.get_running_loop()
    for number in signals:
        loop.add_signal_handler(number, event.set)


def _leave_at_once() -> NoReturn:
    """End this process without closing what its successor uses."""
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _welcome(found: Settings, url: str, new_token: Path | None) -> None:
    lines = f"holdfast is ready: {_where(url, found.paths[0])}\n"
    if new_token is not None:
        lines += _about(new_token)
    # In one write: a program that waits for the line has then seen all of it.
    sys.stdout.write(lines)
    sys.stdout.flush()


def _stop_signals(*, reloads: bool) -> list[signal.Signals]:
    """Return the signals that stop the server in order.

    Under nohup SIGHUP is ignored. If the server `reloads`, it reads the certificate again.
    """
    is_stop = not reloads and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN
    return [signal.SIGTERM, signal.SIGINT] + ([signal.SIGHUP] if is_stop else [])


def _where(url: str, path: str) -> str:
    if url.startswith("unix:"):
        return url
    # All addresses of this machine: a browser needs a specific one.
    nearest = url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")
    return f"{url}{path} - to try it out open {nearest}/"


def _about(token: Path) -> str:
    """Return the new token on a terminal; elsewhere only its file, because output may be logged."""
    if sys.stdout.isatty():
        value = token.read_text("ascii").strip()
        return f"the operators' token, shown only once and stored in {token}: {value}\n"
    return f"the operators' token is new; show it with: cat {shlex.quote(str(token))}\n"
