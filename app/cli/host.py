"""`holdfast host`: shows the machines of a deployment, and has one give its shards away."""

import asyncio
import time
from typing import Annotated
from urllib.parse import quote

import typer

from holdfast.cli.asking import asks, says
from holdfast.cli.deployment import settings_of
from holdfast.cli.failures import Exit, failed
from holdfast.cli.flags import ConfigFile
from holdfast.cli.options import ToServer, Yes, confirm
from holdfast.cli.output import Column, Json, answer, note, print_items, print_json, since, spinner
from holdfast.cli.program import group_of_commands
from holdfast.cli.remote import Server, readiness
from holdfast.hosts.fixed_settings import LINKS
from holdfast.units import counted

program = group_of_commands()

Host = Annotated[str, typer.Argument(metavar="HOST", help="Its name in the setting hosts.")]
_LOOK_S = 1.0
# For how long no server need answer while the last shards leave the one that is asked.
_SILENT_S = 15.0

_COLUMNS: tuple[str | Column, ...] = (
    ("HOST", lambda each: each["name"]),
    "state",
    ("SHARDS", lambda each: " ".join(map(str, each["shards"]))),
    "release",
    "url",
    ("DRAINED BY", lambda each: each["drain"]["who"] if each["drain"] else ""),
    ("FOR", lambda each: since(each["drain"]["since"]) if each["drain"] else ""),
)


@program.command("list")
def list_hosts(*, server: ToServer) -> None:
    """List the machines of a deployment: which live, which shards each has, and what moves.

    Every machine answers for all of them. While one is away, the answer takes three seconds.
    """
    found = server.get("/hosts")
    if server.as_json:
        print_json(found)
        return
    print_items(_COLUMNS, found["items"])
    for line in _remarks(found):
        note(line)


@program.command("drain")
def drain(
    *,
    host: Host,
    wait: Annotated[bool, typer.Option(help="Wait until the host has no shard.")] = False,
    server: ToServer,
) -> None:
    """Have a machine give its shards to the others, one by one, and take none for ten minutes.

    Sessions go on there. Do this before you stop or update a machine.

    Example: holdfast host drain a.example --wait
    """
    server.ask("PUT", f"/hosts/{quote(host, safe='')}/drain", {})
    if wait:
        with spinner(f"{host} gives its shards away"):
            _wait(server, host)
        answer({"host": host, "shards": []}, f"{host} has no shard", as_json=server.as_json)
    else:
        done = {"host": host, "draining": True}
        answer(done, f"{host} gives its shards away", as_json=server.as_json)


@asks(program, "uncordon", "DELETE /hosts/{host}/drain", says("{host} has shards again"))
def uncordon(*, host: Host) -> None:
    """Let a machine have shards again, before the ten minutes end."""


@program.command("renew")
def renew(
    *,
    shard: Annotated[int, typer.Argument(min=0, help="Its number.")],
    config: ConfigFile = None,
    yes: Yes = False,
) -> None:
    """Let a shard begin again whose store has come back empty, without what it had.

    Its sessions and messages are lost, unless you restore the store instead. Run this on a machine
    of the deployment, with its settings; the others may run.

    Example: holdfast host renew 3
    """
    with settings_of(config, None) as settings:
        confirm(f"Give up the sessions and messages of shard {shard}?", yes=yes)
        # It needs no server.
        from holdfast.offline.renewal import renew as prepare

        asyncio.run(prepare(settings, shard))
    note(f"a host opens shard {shard} within seconds")


def _wait(server: Server, host: str) -> None:
    """Wait until a host has no shard. Raises `Exit` if others do not take them."""
    last: list[int] | None = None
    answered_at = time.monotonic()
    while not _has_nothing(server, host):
        try:
            found = server.get("/hosts")
        except typer.Exit as error:
            is_late = time.monotonic() - answered_at > _SILENT_S
            if error.exit_code != Exit.UNREACHABLE or is_late:
                raise
            time.sleep(_LOOK_S)
            continue
        answered_at = time.monotonic()
        asked = next(each for each in found["items"] if each["name"] == host)
        if not asked["shards"] and asked["state"] != "serving":
            return
        if asked["drain"] is None:
            raise failed(f"the drain of {host} has ended, and it still has shards: try again")
        if asked["shards"] != last and not server.as_json:
            note(f"{host} has {counted(len(asked['shards']), 'shard')}")
        last = asked["shards"]
        time.sleep(_LOOK_S)


def _has_nothing(server: Server, host: str) -> bool:
    """Return whether the host itself was asked, and has no worker that could answer."""
    return readiness(server.url).startswith(f"host {host} has no shard")


def _remarks(found: Json) -> list[str]:
    # Another release has other settings, and its digest says nothing.
    digests: dict[str, dict[str, list[str]]] = {}
    for each in found["items"]:
        if each["state"] != "away" and each["digest"]:
            of_release = digests.setdefault(each["release"], {})
            of_release.setdefault(each["digest"], []).append(each["name"])
    differing = [
        f"settings differ that must be alike: {'; '.join(map(' '.join, groups.values()))}"
        for groups in digests.values()
        if len(groups) > 1
    ]
    refused = [_refusal(each) for each in found["items"] if each["refused"]]
    moves = [f"shard {each['shard']} moves to {each['target']}" for each in found["moves"]]
    unowned = [f"no living host has shard {shard}" for shard in found["unowned"]]
    emptied = [
        f"the store of shard {shard} has come back empty, and no host opens it: restore it, or run "
        f"holdfast host renew {shard}"
        for shard in found["emptied"]
    ]
    return [*differing, *refused, *emptied, *unowned, *moves]


def _refusal(host: Json) -> str:
    """Return why a host takes no shard."""
    if LINKS in host["refused"]:
        return (
            f"{host['name']} takes no shard, because release {host['release']} has no form of links"
            " in common with the hosts with shards: update by way of a release between them"
        )
    return (
        f"{host['name']} takes no shard, because its settings differ from those of all hosts with "
        f"shards: {', '.join(host['refused'])}"
    )
