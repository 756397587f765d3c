"""A wall clock of one host alone, which jumps."""

import shutil
import struct
import subprocess
from collections.abc import Mapping
from pathlib import Path

_SOURCE = Path(__file__).with_name("skewed.c")
_OFFSET = struct.Struct("@q")
_NS = 1_000_000_000


class SkewedClock:
    """The wall clock of the programs that are started with its variables."""

    def __init__(self, home: Path) -> None:
        self._file = home / "clock"
        self._file.write_bytes(_OFFSET.pack(0))
        self._library = home / "skewed.so"
        words: list[str | Path] = [
            "cc",
            "-shared",
            "-fPIC",
            "-O2",
            "-o",
            self._library,
            _SOURCE,
            "-ldl",
        ]
        subprocess.run(words, check=True)

    @staticmethod
    def is_possible() -> bool:
        return shutil.which("cc") is not None

    @property
    def variables(self) -> Mapping[str, str]:
        return {"LD_PRELOAD": str(self._library), "SKEWED_CLOCK": str(self._file)}

    def jump_to(self, offset_s: float) -> None:
        """Let the clock be off by so many seconds."""
        with self._file.open("r+b") as file:
            file.write(_OFFSET.pack(int(offset_s * _NS)))
