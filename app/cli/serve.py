"""`holdfast serve`: run the server until it is told to stop."""

import asyncio
import signal
import sys
from pathlib import Path
from typing import Any, NoReturn

import orjson
import uvloop
from pydantic import ValidationError
from pydantic_settings import SettingsError
from rich.console import Console

from app import logs
from app.compose import CannotStart, serving
from app.settings import Settings
from app.store.connection import StoreUnavailable

_DEFAULT_FILE = Path("holdfast.toml")
_errors = Console(stderr=True, highlight=False, soft_wrap=True)


def serve(config: Path | None, given: dict[str, Any]) -> None:
    """Run the server until it gets SIGTERM or SIGINT."""
    try:
        settings = read_settings(config, given)
        logs.configure(settings.log_level)
        uvloop.run(_serve(settings))
    except (CannotStart, StoreUnavailable) as error:
        _fail(str(error))


def read_settings(config: Path | None, given: dict[str, Any]) -> Settings:
    """The settings from all sources; ends the program with a word on each that is wrong."""
    if config is not None and not config.is_file():
        _fail(f"config: there is no file {config}")
    Settings.file = config or (_DEFAULT_FILE if _DEFAULT_FILE.is_file() else None)
    try:
        if isinstance(given.get("channels"), str):
            given["channels"] = orjson.loads(given["channels"])
        return Settings(**given)
    except ValidationError as error:
        _fail(*(_complaint(fault) for fault in error.errors()))
    except (SettingsError, ValueError) as error:
        _fail(str(error))


def _complaint(fault: Any) -> str:
    setting = ".".join(str(part) for part in fault["loc"])
    text = fault["msg"].removeprefix("Value error, ")
    return f"{setting}: {text}" if setting else text


def _fail(*complaints: str) -> NoReturn:
    for complaint in complaints:
        _errors.print(f"[bold red]holdfast cannot start:[/] {complaint}")
    sys.exit(2)


async def _serve(settings: Settings) -> None:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    async with serving(settings) as url:
        sys.stdout.write(
            f"holdfast is ready: {url}{settings.paths[0] if url[:5] != 'unix:' else ''}\n"
        )
        sys.stdout.flush()
        await stopped.wait()
