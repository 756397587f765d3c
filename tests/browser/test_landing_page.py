"""The page at `/` works on a desktop and on a phone."""

import json

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.serving import Server

SIZES = {"desk": (1280, 800), "phone": (360, 640)}


@pytest.mark.parametrize("size", SIZES)
def test_the_landing_page_loads_without_errors_and_only_from_its_server(
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


def test_a_published_line_is_shown_to_both_visitors(
    profile: BrowserContext, other_profile: BrowserContext, server: Server
) -> None:
    pages = [profile.new_page(), other_profile.new_page()]
    complaints = [listen_to(page)[0] for page in pages]
    for page in pages:
        page.goto(server.url)
        page.get_by_role("button", name="Connect", exact=True).click()
        expect(page.locator("#state")).to_contain_text("Listening")

    # Text stays text, whatever it looks like.
    line = "<b>hello</b> 😀"
    pages[0].get_by_label("A line of text").fill(line)
    pages[0].get_by_role("button", name="Publish").click()
    for page in pages:
        expect(page.get_by_role("log").get_by_text(line, exact=True)).to_be_visible()

    for page in pages:
        page.get_by_role("button", name="Disconnect").click()
        expect(page.get_by_role("button", name="Connect", exact=True)).to_be_visible()
    assert complaints == [[], []]


def test_no_request_waits_for_the_page(profile: BrowserContext, server: Server) -> None:
    page = profile.new_page()
    page.goto(server.url)
    with page.expect_request(lambda sent: "/meta/subscribe" in (sent.post_data or "")) as subscribe:
        page.get_by_role("button", name="Connect", exact=True).click()
    [message] = json.loads(subscribe.value.post_data or "")
    assert message["ext"]["delivery"] == {"responds": False}


def test_a_wrong_path_is_named_and_not_tried_again(profile: BrowserContext, server: Server) -> None:
    page = profile.new_page()
    page.goto(server.url)
    page.get_by_label("Path").fill("/nope")
    page.get_by_role("button", name="Connect", exact=True).click()
    why = "There is no Bayeux server at this path (HTTP 404). Try /cometd."
    expect(page.locator("#state")).to_have_text(why)
    expect(page.get_by_role("button", name="Connect", exact=True)).to_be_visible()


def listen_to(page: Page) -> tuple[list[str], list[str]]:
    """The errors on the page, and the addresses that it requests, from now on."""
    complaints: list[str] = []
    addresses: list[str] = []
    page.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("requestfailed", lambda request: complaints.append(f"no {request.url}"))
    page.on("request", lambda request: addresses.append(request.url))
    return complaints, addresses
