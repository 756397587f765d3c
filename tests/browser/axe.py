"""What axe-core finds wrong with a page for those who do not see it, or have no mouse."""

from playwright.sync_api import Page

from tests.clients.node_client import MODULES

AXE = MODULES / "axe-core" / "axe.min.js"
SERIOUS = ("serious", "critical")


def findings(page: Page) -> list[str]:
    """Serious ones, each with where it is."""
    if not page.evaluate("'axe' in window"):
        # Not as a script of the page, which may have none but its own.
        page.evaluate(AXE.read_text("utf-8"))
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{each['id']}: {node['target']} {node['failureSummary']}"
        for each in found["violations"]
        if each["impact"] in SERIOUS
        for node in each["nodes"]
    ]
