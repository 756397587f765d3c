"""One server, one browser and one operator in the console for all tests of a module."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Page

from tests.browser.conftest import TIMEOUT_MS
from tests.browser.console.steps import sign_in
from tests.browser.console.world import RULES, World, ordinary
from tests.serving import Server, kill_orphans_in


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    data = tmp_path_factory.mktemp("console")
    # The guard decides soon.
    settings = {"journal": True, "data": str(data), "guard_window": 6000, "channels": RULES}
    server = Server(settings)
    yield ordinary(World(server.url, data))
    server.stop()
    kill_orphans_in(data)


@pytest.fixture(scope="module")
def desk(chromium: Browser) -> Iterator[BrowserContext]:
    """The browser of an operator."""
    with chromium.new_context(reduced_motion="reduce") as context:
        context.set_default_timeout(TIMEOUT_MS)
        yield context


@pytest.fixture(scope="module")
def complaints() -> list[str]:
    return []


@pytest.fixture(scope="module")
def page(desk: BrowserContext, world: World, complaints: list[str]) -> Page:
    """The console, in which the operator ann has signed in."""
    page = desk.new_page()
    page.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    sign_in(page, world, world.operator, "ann")
    return page


@pytest.fixture(autouse=True)
def _nothing_went_wrong(complaints: list[str]) -> Iterator[None]:
    yield
    assert complaints == []
