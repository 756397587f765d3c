"""What users do on the page of the chat, and what they see there."""

from playwright.sync_api import Locator, Page, expect


def join(
    page: Page,
    url: str,
    name: str,
    *,
    room: str = "lobby",
    transport: str = "",
    reliable: bool = True,
) -> None:
    page.goto(f"{url}/chat/")
    page.get_by_label("Your name").fill(name)
    page.get_by_label("Room", exact=True).fill(room)
    page.get_by_label("Transport").select_option(transport)
    page.get_by_label("Enable reliable messaging").set_checked(reliable)
    page.get_by_role("button", name="Join").click()
    is_connected(page)


def is_connected(page: Page) -> None:
    expect(page.locator("#state")).to_contain_text("Connected")


def go_to(page: Page, room: str) -> None:
    """Switch to a room that the page has entered."""
    page.locator("#rooms .name").get_by_text(room, exact=True).click()


def say(page: Page, text: str, to: str = "") -> None:
    page.get_by_label("Send to").select_option(to)
    page.get_by_label("Message", exact=True).fill(text)
    page.get_by_role("button", name="Send").click()


def lines(page: Page) -> Locator:
    """The words of the messages that are shown."""
    return page.locator("#lines .words")


def line(page: Page, text: str) -> Locator:
    """The message with these words, with its notes."""
    return page.locator("#lines .line").filter(has_text=text)


def leave(page: Page) -> None:
    """Leave the chat, which ends the session."""
    page.locator("#leave").click()
    expect(page.get_by_role("button", name="Join")).to_be_enabled()


def press(page: Page, name: str) -> None:
    page.get_by_role("button", name=name).click()


def wire(page: Page) -> Locator:
    """The list of messages on the wire."""
    return page.locator("#wire li")
