"""The page at `/` works by itself, on a desk and on a phone."""

import pytest
from playwright.sync_api import BrowserContext, Page

from tests.serving import Server

SIZES = {"desk": (1280, 800), "phone": (360, 640)}
pytestmark = pytest.mark.timeout(60)


@pytest.mark.parametrize("size", SIZES)
def test_it_loads_whole_and_from_here_only(
    size: str, profile: BrowserContext, server: Server
) -> None:
    page = profile.new_page()
    width, height = SIZES[size]
    page.set_viewport_size({"width": width, "height": height})
    complaints, addresses = listen_to(page)

    response = page.goto(server.url, wait_until="networkidle")

    assert response is not None
    assert response.ok
    assert page.title()
    assert page.locator("html[lang]").count() == 1
    assert page.locator("h1").inner_text()
    assert [address for address in addresses if not address.startswith(server.url)] == []
    assert complaints == []
    overflow = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
    assert overflow <= 0, "it scrolls sideways"


def listen_to(page: Page) -> tuple[list[str], list[str]]:
    """What goes wrong on the page, and what it asks for, from now on."""
    complaints: list[str] = []
    addresses: list[str] = []
    page.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("requestfailed", lambda request: complaints.append(f"no {request.url}"))
    page.on("request", lambda request: addresses.append(request.url))
    return complaints, addresses
