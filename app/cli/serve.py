"""`holdfast serve`: runs the server."""

import asyncio
import gc
import resource
import shlex
import signal
import sys
from pathlib import Path
from typing import Any, NoReturn

import orjson
import uvloop
from pydantic import ValidationError

from holdfast import logs, settings
from holdfast.cli.flags import ConfigFile, GivenSettings
from holdfast.cli.output import complain
from holdfast.cli.program import InSections, Program
from holdfast.compose import CannotStart, serving
from holdfast.settings import ChannelSettings, Settings
from holdfast.settings.environment import LIST
from holdfast.settings.suggestion import did_you_mean
from holdfast.store.connection import StoreUnavailable
from holdfast.web.admin.tokens import OPERATOR_FILE

# What settings with a pattern may be.
_NAME = "write up to 32 lower-case letters, digits and dashes"
_FORMS = {
    "deployment": "write up to 16 lower-case letters and digits",
    "durability": "write memory, everysec, always, or replicas:N with N from 1 to 9",
    "namespace": _NAME,
    "node": _NAME,
}
_DEFAULT_FILE = Path("holdfast.toml")
# In bytes. The C library keeps up to twice as much free memory.
_LARGEST_FREED = 4 * 1024 * 1024


program = Program()


@program.command(cls=InSections)
def serve(*, config: ConfigFile = None, given: GivenSettings) -> None:
    """Run the server until SIGTERM, SIGINT or SIGHUP.

    MS is a time in milliseconds. Each option but --config is also an environment variable
    (--max-queue is HOLDFAST_MAX_QUEUE) and a key of the settings file (max_queue). An option that
    takes a list may be repeated. The server exits with 0 once it has stopped, and with 2 if it
    cannot start.

    Example: holdfast serve --port 9000 --data /var/lib/holdfast --max-queue 500
    """
    # Nothing that was imported becomes garbage; to look for some takes a tenth of the start.
    gc.freeze()
    try:
        found = read_settings(config, given)
        logs.configure(found.log_level)
        _raise_limit_of_files()
        keep_freed_memory()
        uvloop.run(_serve(found))
    except (CannotStart, StoreUnavailable) as error:
        _fail(str(error))


def keep_freed_memory() -> None:
    """Let the C library keep the memory of large responses for the next ones.

    It returns what is free at the end of its heap to the system, if that is more than twice the
    largest block that was ever freed, which is small in a new process. Then every burst of large
    responses has to get its pages again, which takes a quarter of the processor time.
    """
    bytes(_LARGEST_FREED)


def read_settings(config: Path | None, given: dict[str, Any]) -> Settings:
    """Return the settings from all sources; ends the program with an error for each invalid one."""
    if config is not None and not config.is_file():
        _fail(f"config: the file {config} does not exist")
    file = config or (_DEFAULT_FILE if _DEFAULT_FILE.is_file() else None)
    try:
        if "channels" in given:
            given["channels"] = orjson.loads(given["channels"])
        return settings.read(file, given)
    except ValidationError as error:
        _fail(*(_complaint(fault) for fault in error.errors()))
    except orjson.JSONDecodeError as error:
        _fail(f"channels: not JSON: {error}")
    except ValueError as error:
        _fail(str(error))


def _complaint(fault: Any) -> str:
    setting = ".".join(str(part) for part in fault["loc"])
    text = fault["msg"].removeprefix("Value error, ")
    if fault["type"] == "extra_forbidden":
        *place, name = fault["loc"]
        known = (ChannelSettings if place else Settings).model_fields
        text = f"this setting does not exist{did_you_mean(str(name), known)}"
    elif fault["type"] == "list_type":
        text += f": write {LIST}"
    elif fault["type"] == "string_pattern_mismatch":
        text = _FORMS.get(setting, text)
    return f"{setting}: {text}" if setting else text


def _fail(*complaints: str) -> NoReturn:
    for complaint in complaints:
        complain(complaint, "holdfast cannot start:")
    sys.exit(2)


def _raise_limit_of_files() -> None:
    """Raise the limit of open files as far as the system allows: each client needs a socket."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


async def _serve(found: Settings) -> None:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in _stop_signals():
        loop.add_signal_handler(number, stopped.set)
    token = (found.data / OPERATOR_FILE).absolute()
    is_first_start = not token.exists()
    async with serving(found) as url:
        lines = f"holdfast is ready: {_where(url, found.paths[0])}\n"
        if is_first_start:
            lines += _about(token)
        # In one write: a program that waits for the line has then seen all of it.
        sys.stdout.write(lines)
        sys.stdout.flush()
        await stopped.wait()


def _stop_signals() -> list[signal.Signals]:
    """Return the signals that stop the server in order; under nohup SIGHUP is ignored."""
    ignores_hangup = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return [signal.SIGTERM, signal.SIGINT] + ([] if ignores_hangup else [signal.SIGHUP])


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
