"""The suite of Durable Streams finds nothing but what is not offered."""

import asyncio
import os
import re
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import pytest

from tests.clients.conformance.adapter import MADE, adapted
from tests.clients.node_client import CLIENTS, require
from tests.serving import Servers, Settings

SUITE = CLIENTS / "conformance"
RUNNER = SUITE / "node_modules" / "vitest" / "vitest.mjs"
SETTINGS: Settings = {
    "channels": {MADE: {"history": 10_000}},
    # Three of its tests wait for the end of a long poll.
    "timeout": 2000,
    # From there, its page asks whether it may read.
    "allow_origin": ["https://example.com"],
    **{f"budget_{each}": 0 for each in ("requests", "publishes", "bytes")},
}
# One takes as long as a long poll.
TEST_LIMIT_MS = 30_000


class Outcomes(NamedTuple):
    """Names of tests, by what became of them."""

    passed: set[str]
    failed: set[str]
    skipped: set[str]


@pytest.fixture
def expected() -> dict[str, Any]:
    return tomllib.loads((SUITE / "outcomes.toml").read_text("utf-8"))


async def test_readers_find_what_the_suite_of_durable_streams_expects(
    servers: Servers, expected: dict[str, Any], tmp_path: Path
) -> None:
    require(RUNNER.exists(), "tests/clients/conformance/node_modules (make setup-clients)")
    left_out = tuple(each for group in expected["left_out"] for each in group["tests"])
    async with adapted(servers.with_settings(SETTINGS).url) as url:
        outcomes = await _run(url, left_out, tmp_path)
    passes = {
        f"{group} {title}" for group, titles in expected["passes"].items() for title in titles
    }
    fails = {each for group in expected["fails"] for each in group["tests"]}
    # One that passes unexpectedly must move in the list, so that it has to pass from then on.
    assert outcomes.passed == passes
    assert outcomes.failed == fails
    for name in left_out:
        assert any(each.startswith(name) for each in outcomes.skipped), name
    assert [each for each in outcomes.skipped if not each.startswith(left_out)] == []


async def _run(url: str, left_out: tuple[str, ...], home: Path) -> Outcomes:
    """Run the suite, but for tests whose names begin so."""
    report = home / "report.json"
    process = await asyncio.create_subprocess_exec(
        *("node", str(RUNNER), "run", "--root", str(SUITE)),
        *("--testNamePattern", f"^(?!{'|'.join(map(re.escape, left_out))})"),
        *("--testTimeout", str(TEST_LIMIT_MS), "--reporter", "json", "--outputFile", str(report)),
        env={**os.environ, "STREAMS_URL": url},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        said, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
    assert report.exists(), said.decode()
    [file] = orjson.loads(report.read_bytes())["testResults"]
    outcomes = Outcomes(set(), set(), set())
    for each in file["assertionResults"]:
        getattr(outcomes, each["status"]).add(each["fullName"])
    return outcomes
