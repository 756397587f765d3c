"""Where a server of a deployment has its place: one shard of several, or the only one."""

from dataclasses import dataclass
from pathlib import Path

from holdfast.settings import Settings

_SHARDS = "shards"
_LINKS = "links"


def data_of(directory: Path, shard: int) -> Path:
    """Return the directory of a shard, given the whole deployment's."""
    return directory / _SHARDS / str(shard) if shard else directory


# Of the processes of a host that have none: the one that claims shards, and a door.
NO_SHARD = -1


def far_link_in(links: Path, shard: int) -> Path:
    """Return the socket in the directory of links at which a shard takes those of other hosts."""
    return links / f"{shard}.tcp.sock"


@dataclass(frozen=True, slots=True)
class Placement:
    """The shard of this process, and where the shards of this machine have their files.

    What operators write and read, such as tokens, stays in the directory of the settings.
    """

    # The directory of the deployment, and the one with the sockets of links between shards.
    directory: Path
    links: Path
    number: int = 0
    count: int = 1
    # The name of this host; empty if the deployment has no list of hosts.
    host: str = ""

    @property
    def is_alone(self) -> bool:
        """Whether there is no other shard."""
        return self.count == 1

    @property
    def leads(self) -> bool:
        """Whether this is the first process of its supervisor, which gives what all inherit."""
        return self.number == (NO_SHARD if self.host else 0)

    @property
    def data(self) -> Path:
        """This shard's own directory: the lock, the store and the journal are there."""
        return self.data_of(self.number)

    def data_of(self, shard: int) -> Path:
        """Return the directory of a shard. The first one has the same as a server alone.

        On a host of several, that is the directory of the process that has no shard.
        """
        if self.host:
            return self.directory if shard == NO_SHARD else self.directory / _SHARDS / str(shard)
        return data_of(self.directory, shard)

    def node(self, name: str) -> str:
        """Return the name under which this shard writes its journal, given the server's."""
        return f"{name}/{self.number}" if self.number else name

    def make_parent(self) -> None:
        """Make the directory of this shard's directory, unless it is the deployment's."""
        if not self.leads:
            self.data.parent.mkdir(mode=0o700, parents=True, exist_ok=True)

    def make_others(self) -> None:
        """Make the directories of all other shards, which show how many there are."""
        for shard in () if self.host else self.others:
            other = self.data_of(shard)
            other.parent.mkdir(mode=0o700, exist_ok=True)
            other.mkdir(mode=0o700, exist_ok=True)

    def link_of(self, shard: int) -> Path:
        """Return the socket at which a shard takes what others forward."""
        return self.links / f"{shard}.sock"

    def far_link_of(self, shard: int) -> Path:
        """Return the socket at which a shard takes connections for links to other hosts."""
        return far_link_in(self.links, shard)

    def giving_of(self, shard: int) -> Path:
        """Return the socket at which a shard takes connections that others give."""
        return self.links / f"{shard}.given.sock"

    @property
    def others(self) -> list[int]:
        """The numbers of all other shards."""
        return [shard for shard in range(self.count) if shard != self.number]


def alone(settings: Settings) -> Placement:
    """Return the place of a server that has no other shard beside it."""
    return placed(settings, 0, 1)


def placed(settings: Settings, number: int, count: int, links: Path | None = None) -> Placement:
    """Return the place of a shard. By default, the links are below the data directory."""
    links = links or settings.data.absolute() / _LINKS
    return Placement(settings.data, links, number, count, settings.own_host or "")
