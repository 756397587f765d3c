"""The kinds of deployments that are played, how often, and with which seeds."""

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

from tests.forking import ROOT

# Seeds begin at one of so many, which the commit decides.
_SEEDS = 1_000_000


@dataclass(frozen=True, slots=True)
class Mode:
    """A kind of deployment, by the words of the command line, with the seeds of a short run."""

    words: str
    seeds: int

    @property
    def is_supervised(self) -> bool:
        return any(each in self.words for each in ("--supervisor", "--hosts", "embedded"))


# A seed of one server takes half a second, others up to eight. A night plays many times as many, in
# the same proportion.
MODES: Sequence[Mode] = (
    Mode("", 8),
    Mode("--store pair", 5),
    Mode("--store cluster", 4),
    Mode("--supervisor", 4),
    Mode("--store embedded", 2),
    Mode("--shards", 2),
    Mode("--shards --store own", 2),
    Mode("--shards --store pair", 2),
    Mode("--shards --store cluster", 2),
    Mode("--shards --supervisor", 1),
    Mode("--shards --store embedded", 1),
    Mode("--hosts", 1),
    Mode("--hosts --store pair", 1),
    Mode("--hosts --store cluster", 1),
    Mode("--divide", 1),
    Mode("--divide --store own", 1),
    Mode("--divide --store pair", 1),
    Mode("--divide --store cluster", 1),
)


def first_seed() -> int:
    """Return the first of the seeds that are played for this commit: others for each."""
    found = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    # Sources without a history always play the same ones.
    return int(found.stdout.strip() or "0", 16) % _SEEDS + 1
