"""Browsers ask each other with cometd.js: by the extension for requests, and by remote calls."""

from tests.clients.node_client import LONG_POLLING, WEBSOCKET, Scenario, cases, play, server_for
from tests.pages import ROOT, blocks
from tests.serving import Servers

SUITE = "cometd_requests"
[PAGE] = [
    block.text
    for block in blocks(ROOT / "docs" / "reference" / "requests.md")
    if block.kind == "page"
]
SCENARIOS = [
    Scenario("asksAnother", (WEBSOCKET, LONG_POLLING)),
    Scenario("callsAnother", (WEBSOCKET, LONG_POLLING)),
    Scenario("doesWhatTheDocsShow", (WEBSOCKET,), facts={"code": PAGE}),
]


@cases(SCENARIOS)
def test_cometd_js_asks_another_browser(
    scenario: Scenario, transport: str, servers: Servers
) -> None:
    play(SUITE, scenario, transport, server_for(scenario, servers))
