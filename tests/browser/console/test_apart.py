"""The console where others reach the server, as in a container: on a listener of its own."""

from pathlib import Path
from urllib.parse import urljoin

import pytest
from playwright.sync_api import BrowserContext, expect

from tests.browser.console.steps import answer, go, sign_in
from tests.browser.console.world import World
from tests.container import command_of_the_image, flag
from tests.web.programs import admin_url, program


@pytest.fixture(scope="module")
def complaints() -> list[str]:
    return []


def test_an_operator_works_on_the_port_of_the_administration(
    desk: BrowserContext, complaints: list[str], tmp_path: Path
) -> None:
    words = command_of_the_image()[2:]
    data = tmp_path / "volume"
    here = {flag("port"): "0", flag("admin"): "0.0.0.0:0", flag("data"): str(data)}
    with program(*(here.get(word, word) for word in words), home=tmp_path) as running:
        public = running.place().replace("0.0.0.0", "127.0.0.1")
        admin = admin_url(running).replace("0.0.0.0", "127.0.0.1")
        world = World(urljoin(public, "/").rstrip("/"), data)
        world.receiver("joe/1", "/orders")
        # Operators use the other port.
        world.url = admin
        page = desk.new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        sign_in(page, world, world.operator, "ann")
        go(page, "Sessions")
        page.get_by_role("link", name="joe/1").click()
        page.get_by_role("button", name="Hold back delivery").click()
        answer(page, "Hold back")
        expect(page.get_by_role("button", name="Resume delivery")).to_be_visible()
        assert world.ask("GET", "sessions/joe/1")["hold"]["who"] == "operator/ann"
        page.close()
