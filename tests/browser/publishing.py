"""Publishes from a page, with nothing but fetch."""

from typing import Any

from playwright.sync_api import Page

_PUBLISH = """async ([channel, all]) => {
    const ask = async (messages) => (await fetch("/cometd", {
        method: "POST",
        headers: {"Content-Type": "application/json"},
        body: JSON.stringify(messages),
    })).json();
    const supportedConnectionTypes = ["long-polling"];
    const [{clientId}] = await ask(
        [{channel: "/meta/handshake", version: "1.0", supportedConnectionTypes}]);
    const replies = await ask(all.map((data) => ({channel, clientId, data})));
    await ask([{channel: "/meta/disconnect", clientId}]);
    return replies.every(({successful}) => successful);
}"""


def publish(page: Page, channel: str, *data: Any) -> None:
    """Publish messages from any page of the server."""
    assert page.evaluate(_PUBLISH, [channel, list(data)])
