"""Lines of the log that name an error say where its page is."""

import logging
from pathlib import Path

import aiohttp
import pytest

from holdfast import distribution
from holdfast.compose import manual, serving
from holdfast.compose.manual import errors_for_clients, errors_page
from holdfast.settings import Settings

OWN = "https://push.example.org"


def test_the_page_is_where_the_documentation_is(monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = Settings(docs_url="https://docs.example.org/")
    assert errors_page(elsewhere, OWN) == "https://docs.example.org/reference/error-codes/"
    monkeypatch.setattr(manual, "is_built", lambda _: True)
    assert errors_page(Settings(), OWN) == f"{OWN}/docs/reference/error-codes/"
    assert errors_page(Settings(), "unix:/run/a.sock") == "/docs/reference/error-codes/"
    # Clients may know the server by another address.
    assert errors_for_clients(Settings()) == "/docs/reference/error-codes/"
    # The operator wants no links.
    assert errors_for_clients(Settings(docs_url="")) == ""
    assert errors_page(Settings(docs_url=""), OWN) == "docs/reference/error-codes.md"


def test_without_documentation_the_page_is_the_published_one_or_that_of_the_sources(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(manual, "is_built", lambda _: False)
    assert errors_page(Settings(), OWN) == "docs/reference/error-codes.md"
    monkeypatch.setattr(distribution, "PUBLISHED", True)
    monkeypatch.setattr(distribution, "release", lambda: "1.2.3")

    class Described:
        def __init__(self, *links: str) -> None:
            self.metadata, self._links = self, list(links)

        def get_all(self, _: str, __: list[str]) -> list[str]:
            return self._links

    at = "Source, https://example.org/us/holdfast"
    monkeypatch.setattr(distribution, "distribution", lambda _: Described("Issues, x", at))
    page = "https://example.org/us/holdfast/blob/v1.2.3/docs/reference/error-codes.md"
    assert errors_page(Settings(), OWN) == page
    monkeypatch.setattr(distribution, "distribution", lambda _: Described())
    assert errors_page(Settings(), OWN) == "docs/reference/error-codes.md"


async def test_a_server_with_its_documentation_names_its_own_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(manual, "is_built", lambda _: True)
    caplog.set_level(logging.INFO)
    async with (
        serving(Settings(port=0, data=tmp_path / "data")) as url,
        aiohttp.ClientSession() as http,
        http.get(url, headers={"Host": "else.example"}) as answer,
    ):
        assert answer.status == 421
    own = url.removesuffix("/cometd")
    assert f"; see {own}/docs/reference/error-codes/#421-host_unknown" in caplog.text
