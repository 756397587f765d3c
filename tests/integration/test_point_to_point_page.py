"""The commands of the page on point-to-point messages do what it says."""

import json
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

from tests.pages import ROOT, blocks
from tests.serving import Servers, environment

LIMIT_S = 60


def test_the_walk_to_a_subject_prints_what_its_page_shows(servers: Servers, tmp_path: Path) -> None:
    page = ROOT / "docs" / "reference" / "point-to-point.md"
    [block] = [each for each in blocks(page) if each.kind]
    script = tmp_path / "walk.sh"
    script.write_text(block.at(urlsplit(servers.with_settings({}).url).netloc))
    done = subprocess.run(
        ["sh", "-eu", script],
        cwd=tmp_path,
        env=environment() | {"no_proxy": "127.0.0.1"},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=True,
    )
    unknown, queued, received = map(json.loads, filter(None, done.stdout.splitlines()))
    assert unknown[0]["error"] == "404:user.ptp.unknownDestination,client/joe:destination_unknown"
    [destination] = queued[0]["ext"]["delivery"]["destinations"]
    assert destination == {"name": "client/joe", "state": "QUEUED"}
    assert [each.get("data") for each in received] == ["Call me.", None]
