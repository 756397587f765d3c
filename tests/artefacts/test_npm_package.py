"""The package for npm: an empty project installs it, bundles it, and runs in a browser."""

import base64
import gzip
import hashlib
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, Route, expect

from tests.artefacts.conftest import LIMIT_S, node_variables, require_built
from tests.clients.node_client import MODULES, require
from tests.pages import ROOT, blocks
from tests.serving import Server

README = ROOT / "static" / "js" / "README.md"
PROGRAMS = [block.text for block in blocks(README) if block.language == "js"]
USUAL = "http://localhost:8080"
ORIGIN = "http://localhost:8000"
EXAMPLE = ROOT / "docs" / "examples" / "import_map"
KINDS = {".css": "text/css", ".html": "text/html", ".js": "text/javascript"}
# An entry, and its bytes: minified, and compressed as well.
SIZES = re.findall(r"^\| `(\S+\.js)` \|.*\| ([\d,]+) \| ([\d,]+) \|$", README.read_text(), re.M)
ESBUILD = MODULES / ".bin" / "esbuild"


def run(command: list[str | Path], cwd: Path) -> None:
    made = subprocess.run(
        command, cwd=cwd, env=node_variables(), capture_output=True, text=True, timeout=LIMIT_S
    )
    assert made.returncode == 0, made.stdout + made.stderr


@pytest.fixture(scope="module")
def project(npm: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with nothing but the tarball, and the clients that it extends."""
    home = tmp_path_factory.mktemp("project")
    (home / "package.json").write_text('{"private": true, "type": "module"}')
    tarball = require_built("holdfast-bayeux-*.tgz")
    run([npm, "install", "--no-audit", "--no-fund", tarball], home)
    for name in ("cometd", "faye"):
        (home / "node_modules" / name).symlink_to(MODULES / name)
    return home


def bundle(project: Path, name: str, text: str) -> str:
    require(ESBUILD.exists(), "tests/clients/node_modules/.bin/esbuild (make setup-clients)")
    (project / f"{name}.js").write_text(text)
    flags = ["--bundle", "--minify", "--format=esm", "--external:react", "--external:vue"]
    # Faye expects what Node has.
    flags.append("--define:global=globalThis")
    made = project / "made" / f"{name}.js"
    run([ESBUILD, f"{name}.js", *flags, f"--outfile={made}", "--log-level=error"], project)
    return made.read_text()


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server({"allow_origin": [ORIGIN]})
    yield server
    server.stop()


def open_page(profile: BrowserContext, files: dict[str, str], site: str = ORIGIN) -> Page:
    """A page of this site, which has these files and no others."""

    def serve(route: Route) -> None:
        name = route.request.url.removeprefix(f"{site}/") or "index.html"
        route.fulfill(body=files[name], content_type=KINDS[Path(name).suffix])

    profile.route(f"{site}/**", serve)
    return profile.new_page()


@pytest.mark.parametrize("client", ["cometd", "faye"])
def test_the_programs_of_the_readme_are_bundled_and_get_their_orders(
    client: str, project: Path, profile: BrowserContext, server: Server
) -> None:
    [program] = (text for text in PROGRAMS if f'from "{client}"' in text)
    made = bundle(project, client, program.replace(USUAL, server.url))
    page = '<!doctype html><link rel="icon" href="data:,"><script type="module" src="made.js">'
    # Faye asks another origin by JSONP, which the server does not speak unless it is told to.
    site = {"cometd": ORIGIN, "faye": f"{server.url}/shop"}[client]
    opened = open_page(profile, {"index.html": f"{page}</script>", "made.js": made}, site)
    with opened.expect_console_message(lambda said: said.text == "order 3"):
        opened.goto(f"{site}/")


def test_each_entry_has_the_size_that_the_readme_says(project: Path) -> None:
    """It may shrink by a tenth before the readme must follow; it may not grow."""
    assert SIZES
    measured, said = {}, {}
    for entry, *sizes in SIZES:
        made = bundle(project, f"size_of_{entry}", f'export * from "holdfast-bayeux/{entry}";')
        measured[entry] = [len(made), len(gzip.compress(made.encode(), mtime=0))]
        said[entry] = [int(size.replace(",", "")) for size in sizes]
    off = {
        entry: sizes
        for entry, sizes in measured.items()
        if any(
            not 0.9 * most <= size <= most for size, most in zip(sizes, said[entry], strict=True)
        )
    }
    assert off == {}


def test_a_bundle_has_only_what_it_uses(project: Path) -> None:
    by_index = bundle(project, "one", 'export {Refuse} from "holdfast-bayeux";')
    assert len(by_index) < 500
    assert "SharedWorker" not in by_index


def test_the_page_with_an_import_map_works_under_its_own_policy(
    profile: BrowserContext, server: Server
) -> None:
    files = {path.name: path.read_text("utf-8") for path in EXAMPLE.iterdir()}
    before = hash_of_the_map(files["index.html"])
    assert f"'{before}'" in files["index.html"]
    place = server.url.removeprefix("http://")
    moved = {name: text.replace("localhost:8080", place) for name, text in files.items()}
    moved["index.html"] = moved["index.html"].replace(before, hash_of_the_map(moved["index.html"]))
    page = open_page(profile, moved)
    refused: list[str] = []
    page.on("console", lambda said: refused.append(said.text))
    page.goto(ORIGIN)
    expect(page.get_by_role("status")).to_have_text("Connected")
    page.get_by_role("button", name="Order nonsense").click()
    page.get_by_role("button", name="Order", exact=True).click()
    expect(page.get_by_role("listitem")).to_have_text(["3 pieces"])
    assert [text for text in refused if "Security" in text] == []


def test_the_policy_of_the_page_forbids_another_script(profile: BrowserContext) -> None:
    files = {path.name: path.read_text("utf-8") for path in EXAMPLE.iterdir()}
    odd = "<script>document.title = 'odd'</script></main>"
    page = open_page(profile, {**files, "index.html": files["index.html"].replace("</main>", odd)})
    page.goto(ORIGIN)
    assert page.title() == "Orders"


def hash_of_the_map(page: str) -> str:
    found = re.search(r'<script type="importmap">(.*?)</script>', page, re.DOTALL)
    assert found
    return f"sha256-{base64.b64encode(hashlib.sha256(found[1].encode()).digest()).decode()}"
