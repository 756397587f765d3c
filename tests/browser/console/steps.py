"""What operators do at the console, step by step."""

from playwright.sync_api import Page, expect

from tests.browser.console.world import World


def sign_in(page: Page, world: World, token: str, name: str = "") -> None:
    page.goto(f"{world.url}/console/")
    page.get_by_label("Token").fill(token)
    page.get_by_label("Your name").fill(name)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_text("live", exact=True)).to_be_visible()


def go(page: Page, place: str) -> None:
    page.get_by_role("navigation").get_by_role("link", name=place, exact=True).click()
    expect(page).to_have_title(f"{place} · Holdfast")


def look_at(page: Page, address: str) -> None:
    """Open a page of the console by its address, after removing what was shown before."""
    page.evaluate("content.replaceChildren()")
    if page.evaluate("location.hash") == address:
        page.evaluate("dispatchEvent(new Event('hashchange'))")
    else:
        page.evaluate("(address) => { location.hash = address; }", address)
    page.locator("#content h1").wait_for(state="attached")


def addresses(world: World) -> list[str]:
    """The addresses of all pages."""
    [letter, *_] = world.ask("GET", "dead-letters?limit=1")["items"]
    replays = world.ask("GET", "replays")["items"]
    return [
        "#/", "#/now", "#/sessions", "#/sessions/mail/1", "#/subjects", "#/subjects/mail",
        "#/work", "#/work/%2Fjobs%2Fpictures",
        "#/channels", "#/channels/%2Fprices",
        "#/delayed",
        "#/dead",
        "#/dead/letters", f"#/dead/letters?fingerprint={letter['fingerprint']}",
        f"#/dead/letter/{letter['id']}",
        "#/replays", *(f"#/replays/{each['id']}" for each in replays[:1]),
        "#/messages", f"#/messages/{letter['message']}", "#/results", "#/audit",
    ]  # fmt: skip


def answer(page: Page, button: str, **fields: str) -> None:
    """Fill in the dialog, and press its button."""
    dialog = page.get_by_role("dialog")
    for label, value in fields.items():
        dialog.get_by_label(label).fill(value)
    dialog.get_by_role("button", name=button).click()
