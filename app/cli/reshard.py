"""`holdfast reshard`: divides a deployment among more or fewer workers."""

import asyncio
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli.deployment import settings_of
from holdfast.cli.flags import ConfigFile
from holdfast.cli.options import AsJson, OfData
from holdfast.cli.output import answer, note, progress
from holdfast.cli.program import Program
from holdfast.offline.divide import divide
from holdfast.offline.reshard import Plan, Progress, Report
from holdfast.settings import Settings
from holdfast.settings.server import MOST_WORKERS
from holdfast.units import counted

program = Program()


@program.command()
def reshard(
    *,
    shards: Annotated[
        int | None, typer.Option(min=1, max=MOST_WORKERS, help="How many workers there are to be.")
    ] = None,
    rules: Annotated[
        bool, typer.Option(help="Move what channels keep to where the rules now want it.")
    ] = False,
    drop: Annotated[bool, typer.Option(help="Only remove what a killed run has left.")] = False,
    dry_run: Annotated[bool, typer.Option(help="Only say what each worker would get.")] = False,
    config: ConfigFile = None,
    data: OfData = None,
    as_json: AsJson = False,
) -> None:
    """Divide sessions and messages among more or fewer workers of a stopped server.

    Make a backup before. Until the end, the stores need more than twice the memory. If the command
    is killed, nothing is lost: servers go on with the former division or the new one, and the next
    run goes on. Then set workers to the new number.

    Example: holdfast reshard --shards 3
    """
    if (shards is None and not rules) != drop:
        raise typer.BadParameter("choose --shards, --rules or both; or --drop alone")
    plan = Plan(shards, rules=rules, is_dry=dry_run)
    with settings_of(config, data, "holdfast has moved nothing:") as settings:
        found = _run(settings, plan, config)
    answer(found.to_json(), _text(found), as_json=as_json)


def _run(settings: Settings, plan: Plan, config: Path | None) -> Report:
    with progress() as bar:
        told = Progress(say=note)

        def begin(what: str, total: int) -> None:
            task = bar.add_task(what, total=total)
            told.advance = partial(bar.advance, task)

        told.begin = begin
        return asyncio.run(divide(settings, plan, told, config))


def _text(found: Report) -> str:
    if not found.has_moved:
        has = f"the deployment has {counted(found.before, 'shard')} already: nothing has to move"
        left = f"; removed {counted(found.removed, 'key')} of a killed run"
        return has + left if found.removed else has
    verb = "would get" if found.is_dry else "has"
    lines = [
        f"shard {shard} {verb} {counted(found.sessions.get(shard, 0), 'session')}, "
        f"{counted(found.entries.get(shard, 0), 'entry', 'entries')} and "
        f"{counted(found.letters.get(shard, 0), 'dead letter')}"
        for shard in range(found.after)
    ]
    lines += [f"before that, a server runs for a moment: {each}" for each in found.untaken]
    if found.is_dry:
        now, more = (f"{size / 1024**2:,.1f} MiB" for size in (found.memory, found.needed))
        lines.append(f"the stores have {now} in memory, and need about {more} more until the end")
        if found.after < found.before:
            ended = [str(shard) for shard in range(found.after, found.before)]
            word = "shard" if len(ended) == 1 else "shards"
            lines.append(
                f"the journal of {word} {', '.join(ended)} is read no more then: if you use the "
                "pipeline, run holdfast pipeline ingest --once before"
            )
    else:
        lines.append(f"start the server with --workers {found.after}")
    return "\n".join(lines)
