"""What axe-core finds wrong with a page for users of screen readers or keyboards."""

from playwright.sync_api import Page

from tests.clients.node_client import MODULES

AXE = MODULES / "axe-core" / "axe.min.js"
SERIOUS = ("serious", "critical")


def findings(page: Page, *rules: str) -> list[str]:
    """The serious findings with their places, by these rules or by all."""
    if not page.evaluate("'axe' in window"):
        # Not as a script element, which the policy of the page may forbid.
        page.evaluate(AXE.read_text("utf-8"))
    options = {"resultTypes": ["violations"], **({"runOnly": list(rules)} if rules else {})}
    found = page.evaluate("(options) => axe.run(document, options)", options)
    return [
        f"{each['id']}: {node['target']} {node['failureSummary']}"
        for each in found["violations"]
        if each["impact"] in SERIOUS
        for node in each["nodes"]
    ]
