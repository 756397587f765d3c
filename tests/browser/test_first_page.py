"""The first page that the documentation shows works when another server than ours serves it."""

from urllib.parse import urlsplit

from playwright.sync_api import BrowserContext, Route, expect

from tests.clients.node_client import MODULES
from tests.pages import ROOT, blocks
from tests.serving import Servers

ORIGIN = "http://pages.holdfast.test"


def test_the_first_page_works_from_another_origin(
    profile: BrowserContext, servers: Servers
) -> None:
    port = urlsplit(
        servers.with_settings({"allow_origin": [ORIGIN], "host_name": ["holdfast.test"]}).url
    ).port
    [block] = [
        block
        for block in blocks(ROOT / "docs" / "how-to" / "browser.md")
        if block.kind == "browser"
    ]
    # A name of the same site, as localhost with two ports would be.
    text = block.text.replace("localhost:8080", f"holdfast.test:{port}")

    def serve(route: Route) -> None:
        path = urlsplit(route.request.url).path
        if path == "/":
            route.fulfill(body=text, content_type="text/html")
        elif path.startswith("/node_modules/cometd/"):
            body = (MODULES.parent / path[1:]).read_text("utf-8")
            route.fulfill(body=body, content_type="text/javascript")
        else:
            route.fulfill(status=404)

    profile.route(f"{ORIGIN}/**", serve)
    page = profile.new_page()
    page.goto(ORIGIN)
    expect(page.get_by_role("listitem")).to_have_count(0)
    # Until the handshake is answered cometd.js keeps what is published.
    page.get_by_role("button").click()
    expect(page.get_by_role("listitem").first).to_contain_text("hello at")
