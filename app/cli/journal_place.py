"""The options that say where the journal and its tables are."""

import asyncio
import os
import socket
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli.failures import Exit, failed
from holdfast.cli.output import note

if TYPE_CHECKING:
    from holdfast.store.local.embedded import EmbeddedValkey

_LAKE = "lake"
_TIMEOUT_S = 5.0


@dataclass(frozen=True, slots=True)
class JournalPlace:
    """A server's data directory, or a store with a place for the tables."""

    data: Path
    redis: str | None
    # None if nothing says where the tables of this store are.
    known_lake: Path | None
    namespace: str

    @property
    def lake(self) -> Path:
        if self.known_lake is None:
            raise typer.BadParameter("--redis needs --lake, the place of the tables")
        return self.known_lake

    @property
    def present_store(self) -> str | None:
        """The URL of the first shard's store; None if it is embedded and not running."""
        if self.redis is not None:
            return self.redis
        from holdfast.store.local.home import Home

        home = Home(self.data)
        return home.url if _answers(home.socket) else None

    @property
    def _directories(self) -> list[Path]:
        """The directories of all shards, in their order: the first has the server's own."""
        from holdfast.compose.placement import data_of
        from holdfast.compose.workers import stored_here

        count = stored_here(self.data) or 1
        return [data_of(self.data, shard) for shard in range(count)]

    @contextmanager
    def stores(self) -> Iterator[str]:
        """The URLs of the stores of all shards; embedded ones without a server are started."""
        if self.redis is not None:
            yield self.redis
            return
        # Commands that only read tables need not wait until this is loaded.
        from holdfast.store.local.home import Home

        if not Home(self.data).directory.exists():
            raise failed(
                f"{self.data} has no data of a server. Name its data directory with --data",
                Exit.USAGE,
            )
        directories = self._directories
        waiting = [each for each in directories if not _answers(Home(each).socket)]
        with ExitStack() as started:
            if waiting:
                note("No server is running here: starting its store to read it")
                started.enter_context(_started(waiting))
            yield " ".join(Home(each).url for each in directories)


@contextmanager
def _started(directories: Sequence[Path]) -> Iterator[None]:
    """Run the embedded stores of these directories."""
    from holdfast.store.links.connection import StoreUnavailable
    from holdfast.store.local.embedded import Durability, EmbeddedValkey

    with asyncio.Runner() as runner, ExitStack() as opened:
        for each in directories:
            embedded = EmbeddedValkey(each, Durability.EVERYSEC)
            try:
                runner.run(embedded.open())
            except StoreUnavailable as error:
                raise failed(str(error), Exit.UNREACHABLE) from None
            opened.callback(_close, runner, embedded)
        yield


def _close(runner: asyncio.Runner, embedded: "EmbeddedValkey") -> None:
    runner.run(embedded.close())


def _answers(place: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as end:
        end.settimeout(_TIMEOUT_S)
        try:
            end.connect(str(place))
        except OSError:
            return False
    return True


_DATA = typer.Option(metavar="DIR", help="The server's data directory.")
_REDIS = typer.Option(metavar="URL", help="URL of the store, if it is not the embedded one.")


def lake_place(given: str) -> Path:
    """Return the folder, or the place in a bucket."""
    from holdfast.pipeline.storage.place import place_of

    try:
        return place_of(given)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


_LAKE_DIR = typer.Option(
    metavar="DIR",
    parser=lake_place,
    help="Folder of the tables, or s3://BUCKET/PREFIX; default: DATA/lake.",
)
_NAMESPACE = typer.Option(metavar="NAME", help="The server's namespace.")


def journal(
    data: Annotated[Path | None, _DATA] = None,
    redis: Annotated[str | None, _REDIS] = None,
    lake: Annotated[Path | None, _LAKE_DIR] = None,
    namespace: Annotated[str, _NAMESPACE] = "holdfast",
) -> JournalPlace:
    # Return the location of the journal and the tables.
    if redis is not None:
        from holdfast.store.links.url import StoreUrl

        try:
            StoreUrl.of(redis)
        except ValueError as error:
            raise typer.BadParameter(f"--redis: {error}") from None
    place = data or Path(os.environ.get("HOLDFAST_DATA", "data"))
    is_known = redis is None or data is not None
    return JournalPlace(place, redis, lake or (place / _LAKE if is_known else None), namespace)


AtJournal = Annotated[JournalPlace, journal]
