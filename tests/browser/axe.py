"""What axe-core finds wrong with a page for those who do not see it, or have no mouse."""

from playwright.sync_api import Page

from tests.clients.node_client import MODULES

AXE = MODULES / "axe-core" / "axe.min.js"
SERIOUS = ("serious", "critical")


def findings(page: Page, *rules: str) -> list[str]:
    """Serious ones, each with where it is; of these rules, or of all."""
    if not page.evaluate("'axe' in window"):
        # Not as a script of the page, which may have none but its own.
        page.evaluate(AXE.read_text("utf-8"))
    options = {"resultTypes": ["violations"], **({"runOnly": list(rules)} if rules else {})}
    found = page.evaluate("(options) => axe.run(document, options)", options)
    return [
        f"{each['id']}: {node['target']} {node['failureSummary']}"
        for each in found["violations"]
        if each["impact"] in SERIOUS
        for node in each["nodes"]
    ]
