"""The client of Durable Streams reads in a page what it reads in Node, whatever happens."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser.conftest import OpenPage
from tests.clients.following import SUITE, WAYS, services, settings_in
from tests.clients.mortal_server import MortalServer

# A page of another site, which the server allows.
ELSEWHERE = "http://elsewhere.test"


@pytest.fixture
def mortal(tmp_path: Path) -> Iterator[MortalServer]:
    mortal = MortalServer({**settings_in(tmp_path), "allow_origin": [ELSEWHERE]})
    yield mortal
    mortal.stop()


@pytest.mark.parametrize("site", ["", ELSEWHERE], ids=["here", "elsewhere"])
@pytest.mark.parametrize("way", WAYS)
def test_a_page_that_follows_a_channel_misses_nothing(
    way: str, site: str, mortal: MortalServer, open_page: OpenPage
) -> None:
    url, root = mortal.alive.url, f"/{SUITE}/{way}"
    served = services(mortal, root)
    page = open_page(site or url, "streams.html")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.expose_function("askTest", lambda request: served[request]())
    context = {"url": f"{url}/cometd", "transport": way, "root": root}
    page.evaluate("(context) => scenarios.follows(context)", context)
    assert any(f"live={way}" in each for each in asked)
