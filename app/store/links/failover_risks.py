"""What a failover of an external store may lose, and whether it takes too long."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from holdfast.store.links.primary import Primary, SentinelsView
from holdfast.store.links.resp import RespConnection, Unusable, Word
from holdfast.units import counted

_TIMEOUT_S = 3.0
_SETTINGS = ("min-replicas-to-write", "cluster-node-timeout")
# A server whose store is away falls silent after 2.5 s. Above this, a failover ends later than
# publishers wait.
_LONGEST_MS = 3000
_ADVISED_MS = 2000
# A replica answers its primary every second.
_LAG = re.compile(r"\blag=(\d+)")
_LONGEST_LAG_S = 3


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What surrounds the store's primary. None stands for what it does not show."""

    # Those that answer it.
    replicas: int
    is_in_cluster: bool = False
    # How long others let it be silent before a replica takes its place.
    node_timeout_ms: int | None = None
    sentinels: SentinelsView | None = None
    # With fewer replicas, it accepts no writes.
    min_replicas: int | None = None


def risks_of(found: Surroundings, durability: str) -> list[str]:
    """Return what to know before the first failover, with the remedies."""
    _, _, required = durability.partition(":")
    said: list[str] = []
    if required and found.replicas < int(required):
        replicas = counted(found.replicas, "replica")
        said.append(
            f"durability is {durability}, but the store has {replicas}: publishers get `unknown` "
            "instead of a success"
        )
    if found.replicas and not required and durability != "memory":
        said.append(
            f"durability is {durability}, and the store has replicas: a failover may lose what the "
            "primary confirmed last, or after it was frozen or cut off. Only durability replicas:n "
            "prevents this"
        )
        if found.sentinels is not None and found.min_replicas == 0:
            said.append(
                "min-replicas-to-write is 0: a primary that is cut off from its Sentinels goes on "
                "accepting messages, which are lost when it returns. Set it to 1"
            )
    if found.replicas and found.sentinels is None and not found.is_in_cluster:
        said.append(
            "the store has replicas, and nothing tells this server when one of them takes the "
            "primary's place: a server that is cut off with the former primary may go on beside "
            "another one. Use Sentinels or a cluster, and name them in redis"
        )
    if found.sentinels is not None and 2 * found.sentinels.named <= found.sentinels.all:
        said.append(
            f"redis names {found.sentinels.named} of {found.sentinels.all} Sentinels: name all of"
            " them, because the server serves without an answer of a replica only if most say that "
            "none has taken the primary's place"
        )
    said += _slow("cluster-node-timeout", found.node_timeout_ms)
    if found.sentinels is not None:
        said += _slow("down-after-milliseconds", found.sentinels.down_after_ms)
    return said


def _slow(setting: str, ms: int | None) -> list[str]:
    if ms is None or ms <= _LONGEST_MS:
        return []
    text = (
        f"{setting} is {ms}: if the primary fails, the store is away for longer than that, and "
        f"clients are not served meanwhile. Set it to {_ADVISED_MS}"
    )
    return [text]


async def failover_risks(primary: Primary, durability: str) -> list[str]:
    """Connect to the store, and return its risks. Raises `Unusable`."""
    wire = await primary.connect([], _TIMEOUT_S)
    try:
        replication = await _fields(wire, "INFO", "replication")
        config = await _fields(
            wire, "CONFIG", "GET", "min-replicas-to-write", "cluster-node-timeout"
        )
    finally:
        wire.abort("asked")
    node_timeout = config.get("cluster-node-timeout") if wire.is_in_cluster else None
    found = Surroundings(
        replicas=answering(replication),
        is_in_cluster=wire.is_in_cluster,
        node_timeout_ms=_number(node_timeout),
        sentinels=await primary.sentinels_view(_TIMEOUT_S),
        min_replicas=_number(config.get("min-replicas-to-write")),
    )
    return risks_of(found, durability)


def answering(replication: Mapping[str, str]) -> int:
    """Return how many replicas have answered lately. One that is gone may be listed for long."""
    count = int(replication.get("connected_slaves", 0))
    about = (replication.get(f"slave{each}", "") for each in range(count))
    lags = [int(found[1]) for text in about if (found := _LAG.search(text))]
    # Not every service that behaves like Redis says it.
    return sum(lag <= _LONGEST_LAG_S for lag in lags) if lags else count


def _number(text: str | None) -> int | None:
    return None if text is None else int(text)


async def _fields(wire: RespConnection, *command: Word) -> dict[str, str]:
    """Return the fields of an answer; none if this user may not ask."""
    try:
        [answer] = await wire.ask([command])
    except Unusable:
        if wire.lost.done():
            raise
        return {}
    if isinstance(answer, bytes):
        pairs = (line.split(":", 1) for line in answer.decode().splitlines() if ":" in line)
        return dict(cast("Any", pairs))
    return {name.decode(): value.decode() for name, value in cast("Any", answer).items()}
