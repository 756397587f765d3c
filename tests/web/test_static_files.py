"""The files of the pages, which are served from memory."""

import gzip
import os
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from holdfast.web.site.static_files import add_files, read_files

Client = TestClient[web.Request, web.Application]
SCRIPT = b"export const answer = 42;\n"


@pytest.fixture
def pages(tmp_path: Path) -> Path:
    for folder in ("js", "npm", ".git"):
        (tmp_path / folder).mkdir()
    for name in ("index.html", "js/a.css", "js/a.js", "js/a.d.ts", "js/.hidden", "npm/b.js"):
        (tmp_path / name).write_bytes(SCRIPT)
    (tmp_path / ".git/config").write_bytes(SCRIPT)
    (tmp_path / "js/a.js.gz").write_bytes(gzip.compress(SCRIPT))
    return tmp_path


@pytest.fixture
async def client(pages: Path) -> AsyncIterator[Client]:
    application = web.Application()
    add_files(application, read_files(pages))
    async with TestClient(TestServer(application), auto_decompress=False) as client:
        yield client


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("index.html", "text/html; charset=utf-8"),
        ("js/a.css", "text/css; charset=utf-8"),
        ("js/a.js", "text/javascript; charset=utf-8"),
        ("js/a.d.ts", "text/plain; charset=utf-8"),
    ],
)
async def test_each_file_has_its_type(name: str, kind: str, client: Client) -> None:
    answer = await client.get(f"/static/{name}", headers={"Accept-Encoding": "identity"})
    assert (answer.status, answer.headers["Content-Type"]) == (200, kind)
    assert await answer.read() == SCRIPT


@pytest.mark.parametrize(
    "name",
    ["", "js", "js/", "none.js", "js/.hidden", ".git/config", "npm/b.js", "js/../index.htm", "%00"],
)
async def test_only_files_of_the_pages_are_served(name: str, client: Client) -> None:
    assert (await client.get(f"/static/{name}")).status == 404


async def test_a_compressed_file_is_for_clients_that_accept_it(client: Client) -> None:
    plain = await client.get("/static/js/a.js", headers={"Accept-Encoding": "br"})
    packed = await client.get("/static/js/a.js", headers={"Accept-Encoding": "br, GZip"})
    assert await plain.read() == gzip.decompress(await packed.read()) == SCRIPT
    assert "Content-Encoding" not in plain.headers
    assert packed.headers["Content-Encoding"] == "gzip"
    assert plain.headers["Content-Type"] == packed.headers["Content-Type"]
    assert plain.headers["Vary"] == packed.headers["Vary"] == "Origin, Accept-Encoding"
    assert plain.headers["ETag"] != packed.headers["ETag"]


def _of_one_page(headers: Mapping[str, str]) -> Mapping[str, str]:
    origin = headers.get("Origin")
    return {"Access-Control-Allow-Origin": origin} if origin == "http://shop.example" else {}


@pytest.mark.parametrize("have", ["", "*"])
async def test_pages_of_allowed_origins_may_import_modules(pages: Path, have: str) -> None:
    application = web.Application()
    add_files(application, read_files(pages), _of_one_page)
    async with TestClient(TestServer(application)) as client:
        for name, origin, is_allowed in (
            ("js/a.js", "http://shop.example", True),
            ("js/a.js", "http://other.example", False),
            ("index.html", "http://shop.example", False),
        ):
            headers = {"Origin": origin, "If-None-Match": have}
            answer = await client.get(f"/static/{name}", headers=headers)
            assert answer.status == (304 if have else 200)
            assert ("Access-Control-Allow-Origin" in answer.headers) == is_allowed
            assert ("Origin" in answer.headers.get("Vary", "")) == name.startswith("js/")


async def test_a_head_request_gets_the_headers_of_the_file(client: Client) -> None:
    answer = await client.head("/static/js/a.css")
    assert (answer.status, answer.headers["Content-Length"]) == (200, str(len(SCRIPT)))
    assert await answer.read() == b""


@pytest.mark.parametrize("have", ["{}", "W/{}", '"other", {}', "*"])
async def test_a_browser_that_has_the_file_is_not_sent_it_again(have: str, client: Client) -> None:
    tag = (await client.get("/static/js/a.css")).headers["ETag"]
    answer = await client.get("/static/js/a.css", headers={"If-None-Match": have.format(tag)})
    assert (answer.status, answer.headers["ETag"]) == (304, tag)
    assert await answer.read() == b""


@pytest.mark.parametrize("have", ['"other"', 'W/"other"', "", "nonsense", '"'])
async def test_a_browser_that_has_another_file_is_sent_this_one(have: str, client: Client) -> None:
    answer = await client.get("/static/js/a.css", headers={"If-None-Match": have})
    assert (answer.status, await answer.read()) == (200, SCRIPT)


async def test_an_edited_file_is_served_as_it_is_now(client: Client, pages: Path) -> None:
    before = await client.get("/static/js/a.css")
    place = pages / "js/a.css"
    changed_ns = place.stat().st_mtime_ns
    place.write_bytes(b"edited")
    os.utime(place, ns=(changed_ns + 1, changed_ns + 1))
    answer = await client.get("/static/js/a.css", headers={"If-None-Match": before.headers["ETag"]})
    assert (answer.status, await answer.read()) == (200, b"edited")


async def test_a_removed_file_is_still_served_from_memory(client: Client, pages: Path) -> None:
    (pages / "js/a.css").unlink()
    assert await (await client.get("/static/js/a.css")).read() == SCRIPT
