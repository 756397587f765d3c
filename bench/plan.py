"""Reads the tables of servers and workloads."""

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

BENCH = Path(__file__).resolve().parent
ROOT = BENCH.parent


@dataclass(frozen=True, slots=True)
class ServerSpec:
    """How to start a server; the texts have placeholders such as {port}."""

    name: str
    cmd: tuple[str, ...]
    url: str
    features: frozenset[str] = frozenset()
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str = "{bench}"
    peer: bool = False
    # Measured only if --only names it.
    by_name: bool = False
    # What answers 200 as soon as all of it serves, if it listens before that.
    ready: str = ""
    # More arguments for the load generators.
    load: str = ""

    @property
    def workers(self) -> int:
        """How many workers its command names."""
        words = self.cmd
        named = [words.index(each) for each in ("--workers", "--shards") if each in words]
        return int(words[named[0] + 1]) if named else 1


@dataclass(frozen=True, slots=True)
class Workload:
    name: str
    args: str
    needs: frozenset[str] = frozenset()

    def suits(self, server: ServerSpec) -> bool:
        return self.needs <= server.features


def read_table(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text())


def read_servers(path: Path) -> dict[str, ServerSpec]:
    return {row["name"]: read_server(row) for row in read_table(path)["server"]}


def read_server(row: Mapping[str, Any]) -> ServerSpec:
    return ServerSpec(
        name=row["name"],
        cmd=tuple(row["cmd"]),
        url=row["url"],
        features=frozenset(row.get("features", ())),
        env={name: str(value) for name, value in row.get("env", {}).items()},
        cwd=row.get("cwd", "{bench}"),
        peer=row.get("peer", False),
        by_name=row.get("by_name", False),
        ready=row.get("ready", ""),
        load=row.get("load", ""),
    )


def read_workloads(path: Path, wanted: str) -> list[Workload]:
    """Return the workloads of `wanted`: names of sets and workloads, separated by commas."""
    table = read_table(path)
    names = [name for each in wanted.split(",") for name in table["sets"].get(each, [each])]
    return [read_workload(name, table["workload"]) for name in names]


def read_workload(name: str, rows: Mapping[str, Any]) -> Workload:
    if name not in rows:
        raise SystemExit(f"no such set or workload: {name}")
    return Workload(name, rows[name]["args"], frozenset(rows[name].get("needs", ())))


def choose(servers: Mapping[str, ServerSpec], names: Iterable[str]) -> list[ServerSpec]:
    chosen = list(names) or [name for name, server in servers.items() if not server.by_name]
    unknown = [name for name in chosen if name not in servers]
    if unknown:
        raise SystemExit(f"no such server: {', '.join(unknown)}")
    return [servers[name] for name in chosen]
