"""The tables: folders of Parquet, a folder for each batch, which is written whole or anew.

`events/batch=N/d=DAY`, `life/batch=N/state=STATE` and so on can be read by whatever reads Parquet;
batches that are not committed yet are not part of it. Which files a folder has is written down
beside the tables: `_receipts/events/batch=N`.
"""

import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import date
from fcntl import LOCK_EX, LOCK_NB, flock
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING

from holdfast.pipeline import schemas
from holdfast.pipeline.failures import PipelineFailed
from holdfast.pipeline.source.outline import Position

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# The lives that a batch left open.
OPEN = "open"
# The columns of each table, and the columns that its folder names encode.
TABLES = {
    "events": (schemas.JOURNAL, "d date"),
    "life": (schemas.LIFE, "state string"),
    OPEN: (schemas.LIFE, ""),
    "messages": (schemas.MESSAGE, ""),
    "lost": (schemas.LOST, ""),
    "latency": (schemas.LATENCY, ""),
}
# Carried from one batch to the next; older ones are not needed.
CARRIED = ("messages", OPEN)


_FILES = "*.parquet"
_DIFFERENT = ("ts", "msg", "pos", "letter", "handed_ts", "ended_ts")
# Dictionaries are useless for columns of unique values; the lowest compression level packs as well.
_HOW = {
    "parquet.compression.codec.zstd.level": "1",
    # A task reads at least one block: a large file must have enough for all.
    "parquet.block.size": str(4 * 1024**2),
    **{f"parquet.enable.dictionary#{name}": "false" for name in _DIFFERENT},
}


# Fewer bytes than this are read before Java has warmed up.
_SMALL = 32 * 1024**2
# Increased by every change that invalidates existing tables.
_VERSION = "4"


class Lake:
    """The tables in one folder; every batch is built only from the one before."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self.checkpoint = self.root / "_checkpoint"
        # Files of running tasks, which are not part of a table yet.
        self.coming = self.root / "_coming"
        self._version = self.root / "_version"
        self._id = self.root / "_id"

    @contextmanager
    def alone(self, who: str) -> Iterator[None]:
        """Hold the lock for this kind of work on the tables.

        Raises:
            PipelineFailed: Another process holds it.
        """
        self.root.mkdir(parents=True, exist_ok=True)
        with (self.root / f"_{who}").open("a") as file:
            try:
                flock(file, LOCK_EX | LOCK_NB)
            except BlockingIOError:
                raise PipelineFailed(f"{self.root}: another {who} is running there") from None
            yield

    def committed(self) -> int | None:
        """Return the newest committed batch."""
        commits = self.checkpoint / "commits"
        found = [int(file.name) for file in commits.glob("*") if file.name.isdecimal()]
        return max(found, default=None)

    def newest(self) -> int:
        """Return the newest committed batch; there must be one.

        Raises:
            PipelineFailed: There are none, or those of another version.
        """
        self._check_version()
        newest = self.committed()
        if newest is None:
            raise PipelineFailed(
                f"{self.root} has no tables yet: run holdfast pipeline ingest first"
            )
        return newest

    def is_small(self) -> bool:
        """Return whether the work takes no longer than Java's warm-up."""
        return sum(file.stat().st_size for file in self.root.rglob(_FILES)) < _SMALL

    def positions(self) -> dict[str, Position]:
        """Return how far each node's journal was read."""
        newest = self.committed()
        if newest is None:
            return {}
        # The file has a version, a line about the batch, and one for each source; there is one.
        last = (self.checkpoint / "offsets" / str(newest)).read_text("utf-8").splitlines()[-1]
        return {node: Position.of(given) for node, given in json.loads(last).items()}

    def check(self) -> None:
        """Refuse to fill tables of another version, or without the memory of how far they go, or
        without what the newest batch has carried.

        Raises:
            PipelineFailed: It would count everything once more, or wrong.
        """
        if (self.root / "events").exists() and not self.checkpoint.exists():
            raise PipelineFailed(
                f"{self.root} has tables without a _checkpoint: name another --lake, or move this "
                "one away"
            )
        self._check_version()
        newest = self.committed()
        if newest is not None:
            self._check_carried(newest)

    def _check_carried(self, newest: int) -> None:
        needed = [self.folder(table, newest) for table in ("messages", "life")]
        gone = [place for place in needed if not place.exists()]
        for table in CARRIED:
            gone += missing(self.folder(table, newest))
        if gone:
            raise PipelineFailed(
                f"{gone[0]} is missing, and the next batch needs it: rebuild it with holdfast "
                "pipeline backfill"
            )

    @property
    def id(self) -> str:
        """The name under which the server knows how far these tables are."""
        return self._id.read_text("utf-8")

    def sign(self) -> None:
        """Record the version of these tables, and their id, which they keep."""
        self.root.mkdir(parents=True, exist_ok=True)
        self._version.write_text(_VERSION, "utf-8")
        if not self._id.exists():
            draft = self._id.with_suffix(".draft")
            draft.write_text(token_hex(4), "utf-8")
            draft.rename(self._id)

    def _check_version(self) -> None:
        if not (self.root / "events").exists():
            return
        try:
            version = self._version.read_text("utf-8")
        except FileNotFoundError:
            version = ""
        if version != _VERSION:
            raise PipelineFailed(
                f"{self.root} has tables of another version of holdfast: name another --lake, or "
                "move this one away"
            )

    def folder(self, table: str, batch: int) -> Path:
        """Return the folder of a batch; open lives are a part of the lives."""
        if table == OPEN:
            return self.folder("life", batch) / f"state={OPEN}"
        return self.root / table / f"batch={batch:08d}"

    def write(self, frame: "DataFrame", table: str, batch: int, *, by: str | None = None) -> None:
        """Write a batch of a table; replace what a failed attempt left."""
        writer = frame.write.mode("overwrite").options(**_HOW)
        if by is not None:
            writer = writer.partitionBy(by)
        writer.parquet(_url(self.folder(table, batch)))
        _give_receipt(self.folder(table, batch))

    def take_in(self, table: str, files: Mapping[str, str], batch: int) -> None:
        """Move finished files into a batch, by their part of the batch.

        Raises:
            PipelineFailed: They lie on another machine.
        """
        place = self.folder(table, batch)
        if place.exists():
            shutil.rmtree(place)
        place.mkdir(parents=True)
        for file, part in files.items():
            aim = place / part
            aim.mkdir(exist_ok=True)
            try:
                (self.coming / file).rename(aim / file)
            except FileNotFoundError:
                raise PipelineFailed(
                    f"files that a worker wrote into {self.coming} are missing: all machines of a "
                    "cluster must see the tables in one folder"
                ) from None
        _give_receipt(place)

    def sweep(self) -> None:
        """Remove the files of tasks that failed or were killed."""
        shutil.rmtree(self.coming, ignore_errors=True)

    def batch(self, spark: "SparkSession", table: str, batch: int) -> "DataFrame":
        """Return a batch of a table; empty if there is none."""
        columns, in_name = TABLES[table]
        schema = ", ".join(filter(None, (columns, in_name)))
        folder = self.folder(table, batch)
        return _read(spark, schema, folder, folder.rglob(_FILES))

    def table(
        self,
        spark: "SparkSession",
        table: str,
        since: date | None = None,
        until: date | None = None,
    ) -> "DataFrame":
        """Return the rows of these days as in `files`; all but carried ones with their `batch`."""
        files = self.files(table, since, until)
        columns, in_name = TABLES[table]
        if table in CARRIED:
            return _read(spark, columns, self.folder(table, self.newest()), files)
        schema = ", ".join(filter(None, (columns, in_name, "batch int")))
        return _read(spark, schema, self.root / table, files)

    def files(self, table: str, since: date | None = None, until: date | None = None) -> list[Path]:
        """Return the files of all committed batches of a table, or of the newest of a carried one.

        Every reader takes them from here. Of events, only those of the days from `since` to `until`
        are returned.
        """
        newest = self.newest()
        if table in CARRIED:
            return sorted(self.folder(table, newest).rglob(_FILES))
        folders = (self.root / table).glob("batch=*")
        return sorted(
            file
            for folder in folders
            if batch_of(folder) <= newest
            for file in folder.rglob(_FILES)
            if _is_wanted(file.parent.name, since, until)
        )

    def forget_carried(self, batch: int) -> None:
        """Remove what earlier batches carried, once the next batch has begun."""
        messages = (self.root / "messages").glob("batch=*")
        lives = (self.root / "life").glob(f"batch=*/state={OPEN}")
        carried = [(each, each) for each in messages] + [(each, each.parent) for each in lives]
        for place, folder in carried:
            if batch_of(folder) < batch - 1:
                remove(place)


def write_down(place: Path, told: object) -> None:
    """Write JSON; a kill leaves the earlier file intact."""
    draft = place.with_suffix(".draft")
    with draft.open("w", encoding="utf-8") as file:
        json.dump(told, file)
        file.flush()
        # Otherwise a power cut may leave the name with an empty file.
        os.fsync(file.fileno())
    draft.rename(place)


def batch_of(folder: Path) -> int:
    """Return the batch number in a folder's name."""
    return int(folder.name.partition("=")[2])


def folder_of(place: Path) -> Path:
    """Return the batch folder of a part or file."""
    return next(each for each in (place, *place.parents) if each.name.startswith("batch="))


def receipt_of(folder: Path) -> Path:
    """Return the path of a batch's list of files; only some tables have one."""
    return folder.parents[1] / "_receipts" / folder.parent.name / folder.name


def receipts(table: Path) -> Iterable[Path]:
    """Yield the receipts of all batches of a table."""
    found = receipt_of(table / "batch=").parent.glob("batch=*")
    # A killed process may have left a draft.
    return (receipt for receipt in found if not receipt.suffix)


def _give_receipt(folder: Path) -> None:
    receipt = receipt_of(folder)
    receipt.parent.mkdir(parents=True, exist_ok=True)
    write_down(receipt, [str(file.relative_to(folder)) for file in folder.rglob(_FILES)])


def _received(folder: Path) -> list[str]:
    """Read the files in a receipt; none if it is missing or torn."""
    try:
        names: list[str] = json.loads(receipt_of(folder).read_bytes())
    except (FileNotFoundError, ValueError):
        return []
    return names


def missing(place: Path) -> list[Path]:
    """Return the files of a batch, or of a part, that were written but are missing."""
    folder = folder_of(place)
    files = (folder / name for name in _received(folder))
    return [file for file in files if file.is_relative_to(place) and not file.exists()]


def remove(place: Path) -> None:
    """Remove a batch, or a part, together with its receipt."""
    folder = folder_of(place)
    left = [name for name in _received(folder) if not (folder / name).is_relative_to(place)]
    if left:
        write_down(receipt_of(folder), left)
    else:
        receipt_of(folder).unlink(missing_ok=True)
    with suppress(FileNotFoundError):
        shutil.rmtree(place)


def _is_wanted(part: str, since: date | None, until: date | None) -> bool:
    name, _, value = part.partition("=")
    if name == "state":
        # Lives that were open after a batch have their end in a later one, or are in `open`.
        return value != OPEN
    if name != "d" or (since is None and until is None):
        return True
    # Days in this form are in the order of their names; events without a time come last.
    return str(since or "") <= value <= str(until or "9")


def _read(spark: "SparkSession", schema: str, base: Path, files: Iterable[Path]) -> "DataFrame":
    """Read files; the names of their folders below `base` are columns."""
    urls = [*map(_url, files)]
    if urls:
        return spark.read.schema(schema).option("basePath", _url(base)).parquet(*urls)
    # Spark sees that the table is empty, and plans accordingly.
    columns = (column.split() for column in schema.split(", "))
    nulls = [f"cast(null as {kind}) as {name}" for name, kind in columns]
    return spark.range(1).where("false").selectExpr(*nulls)


def _url(place: Path) -> str:
    """Return the URL as Spark spells it, which takes escapes in it as letters of the name."""
    return f"file://{place}"
