"""The documentation at `/docs/`, as it was built into an installation."""

import gzip
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from holdfast.web.site.documentation import add_documentation, find_documentation

Client = TestClient[web.Request, web.Application]
PAGE = b"<!doctype html><title>A page</title>"


@pytest.fixture
def pages(tmp_path: Path) -> Path:
    docs = tmp_path / "docs"
    for folder in ("a", "assets/javascripts", "examples"):
        (docs / folder).mkdir(parents=True)
    for name in ("index.html", "a/index.html", "assets/javascripts/a.1.js", "examples/a.html"):
        (docs / f"{name}.gz").write_bytes(gzip.compress(PAGE, mtime=0))
    (docs / "examples/a.zip.gz").write_bytes(gzip.compress(PAGE, mtime=0))
    (docs / "a.png").write_bytes(PAGE)
    (docs / "policy.txt").write_text("script-src sha256-one\nstyle-src sha256-two\n")
    (tmp_path / "secret").write_bytes(PAGE)
    return tmp_path


@pytest.fixture
async def client(pages: Path) -> AsyncIterator[Client]:
    application = web.Application()
    documentation = find_documentation(pages)
    assert documentation is not None
    add_documentation(application, documentation, {"Cache-Control": "no-cache"})
    async with TestClient(TestServer(application), auto_decompress=False) as client:
        yield client


def test_an_installation_without_documentation_has_none(tmp_path: Path) -> None:
    assert find_documentation(tmp_path) is None


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("", "text/html; charset=utf-8"),
        ("a/", "text/html; charset=utf-8"),
        ("a.png", "image/png"),
        ("assets/javascripts/a.1.js", "text/javascript; charset=utf-8"),
        ("examples/a.html", "text/plain; charset=utf-8"),
        ("examples/a.zip", "application/zip"),
    ],
)
@pytest.mark.parametrize("accepted", ["gzip", "identity"])
async def test_every_file_is_served_compressed_or_not(
    name: str, kind: str, accepted: str, client: Client
) -> None:
    answer = await client.get(f"/docs/{name}", headers={"Accept-Encoding": accepted})
    assert (answer.status, answer.headers["Content-Type"]) == (200, kind)
    is_packed = answer.headers.get("Content-Encoding") == "gzip"
    assert is_packed == (accepted == "gzip" and not name.endswith(".png"))
    body = await answer.read()
    assert (gzip.decompress(body) if is_packed else body) == PAGE
    assert answer.headers["Vary"] == "Accept-Encoding"


@pytest.mark.parametrize(
    "name", ["b/", "a/b", "policy.txt", "index.html.gz", "../secret", "%2e%2e/secret", "%00"]
)
async def test_nothing_else_is_served(name: str, client: Client) -> None:
    assert (await client.get(f"/docs/{name}")).status == 404


@pytest.mark.parametrize(("path", "place"), [("/docs", "/docs/"), ("/docs/a", "/docs/a/")])
async def test_a_path_without_its_slash_leads_to_the_page(
    path: str, place: str, client: Client
) -> None:
    answer = await client.get(path, allow_redirects=False)
    assert (answer.status, answer.headers["Location"]) == (308, place)


async def test_only_own_scripts_and_those_of_the_build_run(client: Client) -> None:
    policy = (await client.get("/docs/")).headers["Content-Security-Policy"]
    assert "default-src 'none'; script-src 'self' 'sha256-one'; style-src 'self' 'sha2" in policy
    assert "unsafe" not in policy
    assert "http" not in policy


async def test_browsers_keep_what_never_changes_and_ask_for_the_rest(client: Client) -> None:
    fixed = await client.get("/docs/assets/javascripts/a.1.js")
    page = await client.get("/docs/a/")
    assert "immutable" in fixed.headers["Cache-Control"]
    assert page.headers["Cache-Control"] == "no-cache"
    again = await client.get("/docs/a/", headers={"If-None-Match": page.headers["ETag"]})
    assert (again.status, await again.read()) == (304, b"")
