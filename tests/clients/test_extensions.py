"""The extensions for cometd.js keep their promises, and are small enough to be read."""

import gzip
import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.clients.node_client import CLIENTS, MODULES, require
from tests.slowness import times_slower

SCRIPTS = CLIENTS.parents[1] / "static" / "js"
MOST_BYTES = 6 * 1024


def test_they_do_what_their_own_tests_say() -> None:
    tests = sorted((CLIENTS / "extensions").glob("*.test.js"))
    command = ["node", "--test", *map(str, tests)]
    slower = times_slower(most=6.0)
    run = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=60 * slower,
        env={**os.environ, "TIMES_SLOWER": f"{slower:.1f}"},
    )
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.parametrize("project", ["tsconfig.json", "tsconfig.vue.json"])
def test_pages_in_typescript_compile_with_their_declarations(project: str) -> None:
    compiler = MODULES / ".bin" / "tsc"
    require(compiler.exists(), "tests/clients/node_modules/.bin/tsc (make setup-clients)")
    command = [str(compiler), "--project", str(CLIENTS / "extensions" / project)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stdout


@pytest.mark.parametrize("types", sorted(SCRIPTS.glob("*.d.ts")), ids=lambda path: path.name)
def test_what_is_exported_is_declared(types: Path) -> None:
    script = types.with_name(types.name.replace(".d.ts", ".js"))
    assert _exports(types) == (_exports(script) if script.exists() else set())


def _exports(module: Path) -> set[str]:
    text = module.read_text("utf-8")
    again = re.findall(r"^export \{(\w+)\}", text, re.MULTILINE)
    own = re.findall(r"^export (?:class|function|const) (\w+)", text, re.MULTILINE)
    return {*own, *again}


@pytest.mark.parametrize("script", sorted(SCRIPTS.glob("*.js")), ids=lambda path: path.name)
def test_each_is_small(script: Path) -> None:
    assert script.stat().st_size < MOST_BYTES


def test_requests_take_two_kilobytes_without_comments_and_indentation() -> None:
    lines = [line.strip() for line in (SCRIPTS / "request.js").read_text("utf-8").splitlines()]
    said = [line for line in lines if not line.startswith(("//", "/**"))]
    assert len("\n".join(said)) < 2048


@pytest.mark.parametrize("script", ["delivery.js", "outbox.js", "session_channels.js"])
def test_so_is_all_that_a_page_loads_for_one(script: str) -> None:
    assert _loaded_bytes(script) < MOST_BYTES


def test_so_is_the_one_for_faye_which_has_acks_and_requests_in_it() -> None:
    assert _loaded_bytes("faye.js") < 1.25 * MOST_BYTES


def _loaded_bytes(script: str) -> int:
    loaded = b"".join(path.read_bytes() for path in sorted(_with_imports(SCRIPTS / script)))
    return len(gzip.compress(loaded))


def _with_imports(script: Path) -> set[Path]:
    imports = re.findall(r'from "\./([\w.]+)"', script.read_text("utf-8"))
    return {script}.union(*(_with_imports(SCRIPTS / each) for each in imports))
