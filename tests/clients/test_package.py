"""The npm package of static/js, installed in an empty project as people would."""

import json
import re
import shutil
import subprocess
import tarfile
import tomllib
from pathlib import Path

import pytest

from tests.clients.node_client import MODULES, require
from tests.serving import ROOT

SCRIPTS = ROOT / "static" / "js"
MANIFEST = json.loads((SCRIPTS / "package.json").read_text("utf-8"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
# Every name that the package exports, used as its declarations say.
USE = """
import {DeliveryExtension, Refuse, type DeliveryOptions} from "holdfast-bayeux/delivery.js";
import {FayeExtension} from "holdfast-bayeux/faye.js";
import {listen, type Heard} from "holdfast-bayeux/events.js";
import {newKey, Outbox, PublishRefused, type Reply} from "holdfast-bayeux";
import {RequestError, RequestExtension, type Asks} from "holdfast-bayeux/request.js";
import {keep, recall, storageOf} from "holdfast-bayeux/storage.js";
import type {Handshake, Verdict} from "holdfast-bayeux/wire.js";

const options: DeliveryOptions = {session: "joe/1", retries: -1};
const hello: Pick<Handshake, "ext"> = {ext: {ack: true, delivery: options}};
const verdict: Verdict = {seq: 1, errorCode: "user.update.error", message: "no stock"};
const delivery: DeliveryExtension = new DeliveryExtension(options);
const refuse: Error = new Refuse("user.update.error", "no stock", {delay: 1000});
const error: number = new RequestError("404:/power:no_responders").code;
const made: [string, object, object] = [newKey(), new RequestExtension(), PublishRefused];
const ask = (cometd: Asks): Promise<number> => cometd.ask<number>("/power", {of: "motor"});
const send = (cometd: object): Promise<Reply> => new Outbox(cometd).publish("/orders", 1);
const found: unknown = recall(storageOf("localStorage"), "name");
const told: boolean = new FayeExtension(options).delivery.isResumed;
const end = (): (() => void) => listen("/news", ({data}: Heard) => data, {after: "-1"});
const types = [typeof ask, typeof end, typeof send, typeof keep, typeof found];
const both = [...made, hello, verdict];
console.log(JSON.stringify([delivery.pending, refuse.message, error, both.length, told, types]));
"""
COMPILER_OPTIONS = {
    "strict": True,
    "module": "nodenext",
    "target": "es2022",
    "lib": ["es2022", "dom"],
    "types": [],
    # That of the language is as it is.
    "skipDefaultLibCheck": True,
}


def run(command: list[str], cwd: Path) -> str:
    made = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=120)
    assert made.returncode == 0, made.stdout + made.stderr
    return made.stdout


@pytest.fixture(scope="module")
def tarball(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require(shutil.which("npm"), "npm")
    home = tmp_path_factory.mktemp("packed")
    [packed] = json.loads(run(["npm", "pack", "--json", f"--pack-destination={home}"], SCRIPTS))
    return home / str(packed["filename"])


@pytest.fixture(scope="module")
def project(tarball: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty project in which the tarball is installed."""
    home = tmp_path_factory.mktemp("project")
    (home / "package.json").write_text('{"private": true, "type": "module"}')
    run(["npm", "install", "--offline", "--no-audit", "--no-fund", str(tarball)], home)
    (home / "use.ts").write_text(USE)
    (home / "tsconfig.json").write_text(json.dumps({"compilerOptions": COMPILER_OPTIONS}))
    return home


def test_the_package_has_the_version_and_licence_of_the_server() -> None:
    assert MANIFEST["name"] == "holdfast-bayeux"
    assert MANIFEST["version"] == PROJECT["version"]
    assert MANIFEST["license"] == PROJECT["license"]
    assert (SCRIPTS / "LICENSE").read_text("utf-8") == (ROOT / "LICENSE").read_text("utf-8")


def test_the_package_can_be_published_and_names_the_clients_that_it_extends() -> None:
    assert "private" not in MANIFEST
    assert {*MANIFEST["peerDependencies"]} == {*MANIFEST["peerDependenciesMeta"]}
    assert all(each["optional"] for each in MANIFEST["peerDependenciesMeta"].values())
    assert {"cometd", "faye"} <= {*MANIFEST["peerDependencies"]}
    # Whoever imports one module gets it alone, unless it does something by itself.
    assert MANIFEST["sideEffects"] == ["./shared_events.js"]


def test_the_index_has_all_that_its_entries_have() -> None:
    own = re.findall(r'export \{([^}]*)\} from "(\S+)";', (SCRIPTS / "index.js").read_text())
    entries = {path for _, path in own}
    left_out = {"./channels.js", "./react.js", "./storage.js", "./vue.js", "./wire.js"}
    assert entries == {*MANIFEST["exports"]} - {".", *left_out}
    program = """
        const index = await import("./index.js");
        for (const entry of process.argv.slice(1)) {
            for (const [name, value] of Object.entries(await import(entry))) {
                if (index[name] !== value) throw new Error(`${entry} has ${name}`);
            }
        }"""
    run(["node", "--input-type=module", "-e", program, *sorted(entries)], SCRIPTS)


def test_the_package_has_what_it_exports_and_imports_and_nothing_else(tarball: Path) -> None:
    with tarfile.open(tarball) as files:
        packed = {name.removeprefix("package/") for name in files.getnames()}
    modules = {path.name for path in SCRIPTS.glob("*.js")} - {"example.js"}
    types = {path.name for path in SCRIPTS.glob("*.d.ts")}
    assert packed == {"package.json", "LICENSE", "README.md", *modules, *types}
    exported = {path for each in MANIFEST["exports"].values() for path in each.values()}
    assert {path.removeprefix("./") for path in exported} <= packed
    assert types == {path for path in packed if f"./{path}" in exported and path.endswith(".ts")}


def test_a_page_in_typescript_uses_the_installed_package_by_its_declarations(
    project: Path,
) -> None:
    compiler = MODULES / ".bin" / "tsc"
    require(compiler.exists(), "tests/clients/node_modules/.bin/tsc (make setup-clients)")
    run([str(compiler), "--project", str(project)], project)
    said = json.loads(run(["node", "use.js"], project))
    assert said == [0, "no stock", 404, 5, False, ["function"] * 4 + ["undefined"]]


def test_the_declarations_refuse_what_the_package_cannot_do(project: Path) -> None:
    compiler = MODULES / ".bin" / "tsc"
    require(compiler.exists(), "tests/clients/node_modules/.bin/tsc (make setup-clients)")
    wrong = USE.replace("retries: -1", 'retries: "often"')
    (project / "wrong.ts").write_text(wrong)
    command = [str(compiler), "--noEmit", "--project", str(project)]
    made = subprocess.run(command, cwd=project, capture_output=True, text=True, timeout=120)
    (project / "wrong.ts").unlink()
    assert made.returncode != 0
    assert "wrong.ts" in made.stdout
    assert "'string' is not assignable to type 'number'" in made.stdout
