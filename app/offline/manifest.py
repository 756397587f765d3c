"""What a backup says about itself, in `backup.json` beside the files of its stores."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import orjson

from holdfast.compose.cannot_start import CannotStart

_NAME = "backup.json"
_VERSION = 1


@dataclass(frozen=True, slots=True)
class StoreFile:
    """The state of the store of one shard, at one moment in ms since 1970."""

    shard: int
    file: str
    time: int
    bytes: int
    sha256: str

    def to_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class Manifest:
    """A complete backup."""

    deployment: str
    namespace: str
    layout: int
    stores: Sequence[StoreFile]

    @property
    def spread_ms(self) -> int:
        """How far apart the moments of its stores are."""
        times = [each.time for each in self.stores]
        return max(times) - min(times)

    def to_json(self) -> dict[str, Any]:
        """Return what `of` reads, and what people ask first."""
        return {
            "v": _VERSION,
            "deployment": self.deployment,
            "namespace": self.namespace,
            "layout": self.layout,
            "shards": len(self.stores),
            "spread_ms": self.spread_ms,
            "stores": [each.to_json() for each in self.stores],
        }

    def write(self, directory: Path) -> None:
        """Write it into the directory of the backup."""
        text = orjson.dumps(self.to_json(), option=orjson.OPT_INDENT_2)
        (directory / _NAME).write_bytes(text + b"\n")

    @classmethod
    def of(cls, directory: Path) -> Self:
        """Read the manifest of a backup. Raises `CannotStart`."""
        try:
            found: Mapping[str, Any] = orjson.loads((directory / _NAME).read_bytes())
            if found["v"] != _VERSION:
                raise CannotStart(f"{directory}: a backup of version {found['v']}, not {_VERSION}")
            stores = [StoreFile(**each) for each in found["stores"]]
            names = (found["deployment"], found["namespace"], int(found["layout"]))
            are_here = all(Path(each.file).name == each.file for each in stores)
        except OSError as error:
            raise CannotStart(f"{directory}: no complete backup: {error.strerror}") from error
        except (LookupError, TypeError, ValueError) as error:
            raise CannotStart(f"{directory / _NAME} is unreadable: {error!r}") from error
        if [each.shard for each in stores] != [*range(len(stores))] or not stores:
            raise CannotStart(f"{directory}: the backup does not have all shards")
        if not are_here:
            raise CannotStart(f"{directory}: a file of the backup is in another directory")
        return cls(*names, stores)
