"""`holdfast serve`: run the server until it is told to stop."""

import asyncio
import resource
import shlex
import signal
import sys
import tomllib
from pathlib import Path
from typing import Any, NoReturn

import orjson
import typer
import uvloop
from pydantic import ValidationError
from pydantic_settings import SettingsError
from rich.console import Console
from rich.text import Text

from app import logs, settings
from app.cli.flags import flags_of_settings
from app.compose import CannotStart, serving
from app.settings import Settings
from app.store.connection import StoreUnavailable
from app.web.admin.tokens import OPERATOR_FILE

_DEFAULT_FILE = Path("holdfast.toml")
_errors = Console(stderr=True, highlight=False, soft_wrap=True)


def serve(config: Path | None, given: dict[str, Any]) -> None:
    """Run the server until it gets SIGTERM, SIGINT or SIGHUP."""
    try:
        found = read_settings(config, given)
        logs.configure(found.log_level)
        _raise_limit_of_files()
        uvloop.run(_serve(found))
    except (CannotStart, StoreUnavailable) as error:
        _fail(str(error))


def read_settings(config: Path | None, given: dict[str, Any]) -> Settings:
    """The settings from all sources; ends the program with a word on each that is wrong."""
    if config is not None and not config.is_file():
        _fail(f"config: there is no file {config}")
    file = config or (_DEFAULT_FILE if _DEFAULT_FILE.is_file() else None)
    try:
        if "channels" in given:
            given["channels"] = orjson.loads(given["channels"])
        return settings.read(file, given)
    except ValidationError as error:
        _fail(*(_complaint(fault) for fault in error.errors()))
    except orjson.JSONDecodeError as error:
        _fail(f"channels: {error}")
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        _fail(f"{file}: {error}")
    except (SettingsError, ValueError) as error:
        _fail(str(error))


def _complaint(fault: Any) -> str:
    setting = ".".join(str(part) for part in fault["loc"])
    text = fault["msg"].removeprefix("Value error, ")
    if fault["type"] == "extra_forbidden":
        text = "there is no such setting"
    return f"{setting}: {text}" if setting else text


def _fail(*complaints: str) -> NoReturn:
    for complaint in complaints:
        # What an operator wrote is no markup.
        _errors.print(Text.assemble(("holdfast cannot start:", "bold red"), " ", complaint))
    sys.exit(2)


def _raise_limit_of_files() -> None:
    """Each session holds a socket: take all that the system allows without asking."""
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
        said = f"holdfast is ready: {_where(url, found.paths[0])}\n"
        if is_first_start:
            said += _about(token)
        # At once: whoever ends the server when it is ready has seen all of it.
        sys.stdout.write(said)
        sys.stdout.flush()
        await stopped.wait()


def _stop_signals() -> list[signal.Signals]:
    """All drain alike; under nohup a terminal that hangs up stops nothing."""
    ignores_hangup = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return [signal.SIGTERM, signal.SIGINT] + ([] if ignores_hangup else [signal.SIGHUP])


def _where(url: str, path: str) -> str:
    if url.startswith("unix:"):
        return url
    # Every address of this machine: a browser needs one of them.
    nearest = url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")
    return f"{url}{path} - to try it out open {nearest}/"


def _about(token: Path) -> str:
    """The new token, if a person reads this; what else standard output leads to keeps its lines."""
    if sys.stdout.isatty():
        value = token.read_text("ascii").strip()
        return f"the operators' token, shown this once and kept in {token}: {value}\n"
    return f"the operators' token is new; what shows it: cat {shlex.quote(str(token))}\n"


program = typer.Typer(add_completion=False, rich_markup_mode=None)
program.command()(flags_of_settings(serve))
