"""Where the journal is, and where its tables are kept: beside the server's data, or elsewhere."""

import asyncio
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from app.cli.failures import Exit
from app.cli.output import complain, note
from app.store.address import Address
from app.store.connection import StoreUnavailable
from app.store.embedded import Durability, EmbeddedValkey
from app.store.home import Home

_LAKE = "lake"
_PATIENCE_S = 5.0


@dataclass(frozen=True, slots=True)
class JournalPlace:
    """A server's data directory, or a store with a folder for the tables."""

    data: Path
    redis: str | None
    given_lake: Path | None
    namespace: str

    @property
    def lake(self) -> Path:
        return self.given_lake or self.data / _LAKE

    @contextmanager
    def store(self) -> Iterator[str]:
        """The URL of the store; that of a server that does not run is started for so long."""
        if self.redis is not None:
            yield self.redis
            return
        home = Home(self.data)
        if not home.directory.exists():
            complain(f"{self.data}: no server has kept anything here. --data names its directory")
            raise typer.Exit(Exit.USAGE)
        if _answers(home.socket):
            yield home.url
            return
        note("No server runs here: its store is started to be read")
        with asyncio.Runner() as runner:
            embedded = EmbeddedValkey(self.data, Durability.EVERYSEC)
            try:
                url = runner.run(embedded.open())
            except StoreUnavailable as error:
                complain(str(error))
                raise typer.Exit(Exit.UNREACHABLE) from None
            try:
                yield url
            finally:
                runner.run(embedded.close())


def _answers(place: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as end:
        end.settimeout(_PATIENCE_S)
        try:
            end.connect(str(place))
        except OSError:
            return False
    return True


_DATA = typer.Option("--data", metavar="DIR", help="The server's data directory.")
_REDIS = typer.Option("--redis", metavar="URL", help="The store, if it is not in the directory.")
_LAKE_DIR = typer.Option("--lake", metavar="DIR", help="Folder of the tables; else DATA/lake.")
_NAMESPACE = typer.Option("--namespace", metavar="NAME", help="The server's namespace.")


def journal(
    data: Annotated[Path | None, _DATA] = None,
    redis: Annotated[str | None, _REDIS] = None,
    lake: Annotated[Path | None, _LAKE_DIR] = None,
    namespace: Annotated[str, _NAMESPACE] = "holdfast",
) -> JournalPlace:
    """Where the journal and the tables are."""
    if redis is not None and lake is None and data is None:
        raise typer.BadParameter("--redis needs --lake: where are the tables to be?")
    if redis is not None:
        try:
            Address.of(redis)
        except ValueError as error:
            raise typer.BadParameter(f"--redis: {error}") from None
    place = data or Path(os.environ.get("HOLDFAST_DATA", "data"))
    return JournalPlace(place, redis, lake, namespace)
