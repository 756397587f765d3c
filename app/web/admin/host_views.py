"""Views of the machines of a deployment."""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from holdfast.store.format.operator_input import Count, Ms

# Whether a host may have shards, gives them to others, or has not been heard of for seconds.
StateOfHost = Literal["serving", "draining", "away"]


@dataclass(frozen=True, slots=True)
class HostWish:
    """Who wants a host to be drained, and since when."""

    who: str
    since: Ms


@dataclass(frozen=True, slots=True)
class HostNow:
    """One machine of the deployment."""

    name: Annotated[str, Field(description="Its name in the setting hosts.")]
    state: StateOfHost
    shards: Annotated[list[Count], Field(description="The shards that it has.")]
    release: Annotated[str | None, Field(description="Its release; null if it never ran.")]
    url: Annotated[str | None, Field(description="Where it answers; null if it never ran.")]
    digest: Annotated[
        str | None,
        Field(description="The same for machines whose shared settings agree."),
    ]
    refused: Annotated[
        list[str],
        Field(description="Settings that all others have otherwise, so it gets no shard."),
    ]
    drain: Annotated[HostWish | None, Field(description="The drain that an operator asked for.")]


@dataclass(frozen=True, slots=True)
class ShardMove:
    """A shard that is to move from a living host to another one."""

    shard: Count
    holder: str
    target: str


@dataclass(frozen=True, slots=True)
class Hosts:
    """All machines of the deployment, and what happens to its shards."""

    items: list[HostNow]
    unowned: Annotated[
        list[Count],
        Field(description="Shards that no living host has, or whose store cannot be read."),
    ]
    emptied: Annotated[
        list[Count],
        Field(description="Shards whose store has come back empty: no host opens them."),
    ]
    moves: Annotated[list[ShardMove], Field(description="What moves, the next one first.")]
