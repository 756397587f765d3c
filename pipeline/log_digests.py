"""The digests of a table's log, which says which files belong to the table.

Each change of the table records the digests of its commits and checkpoints, beside the log.
"""

import json
from collections.abc import Iterable
from pathlib import Path

from holdfast.pipeline.digests import ALTERED, altered, digest_of, read_sealed, write_sealed
from holdfast.pipeline.failures import PipelineFailed

_CHECKPOINT = ".checkpoint.parquet"
# As many digits as a version has in the names of its files.
_VERSION = 20
_ADVICE = "restore it from a copy, or ingest what the journal still has into another --lake"


class LogDigests:
    """The digests of the newest part of a log, from the checkpoint before the newest one on."""

    def __init__(self, table: Path) -> None:
        self._log = table / "_delta_log"
        self._record = table / "_digests"

    def check(self) -> None:
        """Check the log before it is read.

        A commit has no digest until the process that made it, or the next one, records it.

        Raises:
            PipelineFailed: A file of the log is not as it was written.
        """
        for file in self.altered():
            raise PipelineFailed(f"{file} {ALTERED}: {_ADVICE}")
        hint = self._log / "_last_checkpoint"
        if hint.exists() and not self._is_right(hint):
            raise PipelineFailed(f"{hint} {ALTERED}: remove it; nothing else needs it")

    def altered(self) -> Iterable[Path]:
        """Yield the files of the log that are not as they were written."""
        return altered({self._log / name: digest for name, digest in self._known().items()})

    def add(self, first: int, last: int) -> None:
        """Record the commits of these versions, and their checkpoints."""
        known = self._known() or dict.fromkeys(self._older(first), "")
        names = [*(name for name, digest in known.items() if not digest)]
        for version in range(first, last + 1):
            names += [f"{version:0{_VERSION}d}{end}" for end in (".json", _CHECKPOINT)]
        for name in names:
            if (self._log / name).exists():
                known[name] = digest_of(self._log / name)
        checkpoints = sorted(name for name in known if name.endswith(_CHECKPOINT))
        oldest = checkpoints[-2][:_VERSION] if len(checkpoints) > 1 else ""
        kept = {name: digest for name, digest in known.items() if digest and name >= oldest}
        write_sealed(self._record, kept)

    def _known(self) -> dict[str, str]:
        try:
            known: dict[str, str] = read_sealed(self._record)
        except FileNotFoundError:
            return {}
        except PipelineFailed as error:
            raise PipelineFailed(f"{error}: remove it; nothing else needs it") from None
        return known

    def _older(self, first: int) -> Iterable[str]:
        """Return the names of files that an earlier version has written without recording them."""
        for file in self._log.glob("[0-9]*"):
            if file.suffix in (".json", ".parquet") and int(file.name[:_VERSION]) < first:
                yield file.name

    def _is_right(self, hint: Path) -> bool:
        """Return whether the checkpoint exists, if the file names one at all."""
        try:
            version = int(json.loads(hint.read_bytes())["version"])
        except (ValueError, KeyError, TypeError):
            # Readers do without it.
            return True
        return any(self._log.glob(f"{version:0{_VERSION}d}.checkpoint*"))
