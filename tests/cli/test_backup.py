"""`holdfast backup` and `holdfast restore`."""

import asyncio
import json
import threading
from pathlib import Path

from typer.testing import CliRunner

from holdfast.cli.backup import program as backup
from holdfast.cli.restore import program as restore
from tests.offline.test_backups import fill, running


def test_both_say_when_the_stores_were_as_they_are_in_the_backup(tmp_path: Path) -> None:
    data, copy, other = tmp_path / "data", tmp_path / "copy", tmp_path / "other"
    is_filled, is_over = threading.Event(), threading.Event()

    async def serve() -> None:
        async with running(data) as store:
            await fill(store)
            is_filled.set()
            await asyncio.to_thread(is_over.wait)

    server = threading.Thread(target=asyncio.run, args=[serve()])
    server.start()
    try:
        assert is_filled.wait(60)
        done = CliRunner().invoke(backup, [str(copy), "--data", str(data)])
        assert done.exit_code == 0
        assert done.stdout.startswith(f"the backup is in {copy}\nshard 0: 20")
        again = CliRunner().invoke(backup, [str(copy), "--data", str(data)])
        assert (again.exit_code, "exists" in again.stderr) == (1, True)
        second = [str(tmp_path / "second"), "--data", str(data), "--json"]
        told = json.loads(CliRunner().invoke(backup, second).stdout)
        assert (told["deployment"], told["shards"], told["spread_ms"]) == ("here", 1, 0)
    finally:
        is_over.set()
        server.join()
    done = CliRunner().invoke(restore, [str(copy), "--data", str(other)])
    assert done.exit_code == 0
    assert done.stdout.startswith(f"restored into {other}, as it was at 20")
    assert done.stdout.endswith("start the server there with --workers 1\n")
    again = CliRunner().invoke(restore, [str(copy), "--data", str(other)])
    assert (again.exit_code, "has a store" in again.stderr) == (1, True)
    missing = CliRunner().invoke(restore, [str(tmp_path / "none"), "--data", str(other)])
    assert (missing.exit_code, "no complete backup" in missing.stderr) == (1, True)
