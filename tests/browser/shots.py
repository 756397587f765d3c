"""Pictures of every page in three widths, in light and dark: `make screenshots`."""

import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from bench.journal.generate import generate
from bench.journal.outlets import Streams
from tests.browser import chatting
from tests.browser.conftest import ARGUMENTS, CHROMIUM
from tests.browser.console.workers_shown import show_three
from tests.browser.console.world import RULES, World, examined, ordinary
from tests.serving import Server, kill_orphans_in
from tests.store.servers import ValkeyServer

SIZES = {"wide": (1920, 1080), "desk": (1200, 900), "phone": (375, 780)}
SCHEMES = ("light", "dark")
# The limits of the alerts that are raised.
LIMITS = {"oldest": 1000, "letters": 1}


class Studio:
    """A server and a browser; each picture is taken by a visitor of its own."""

    def __init__(self, browser: Browser, server: Server, data: Path, out: Path) -> None:
        self.server = server
        self.data = data
        self._browser = browser
        self._out = out

    @cached_property
    def world(self) -> World:
        """A shop for the console to show."""
        return examined(ordinary(World(self.server.url, self.data)))

    @cached_property
    def report(self) -> Path:
        """The page of all reports on a day with much traffic."""
        place, page = self.data / "report", self.data / "report.html"
        with ValkeyServer() as valkey:
            generate(Streams(valkey.url, "holdfast"), events=200_000, nodes=2, hours=30.0, seed=1)
            for words in (
                ("ingest", "--once", "--engine", "local", "--redis", valkey.url),
                ("report", "all", "--html", str(page)),
            ):
                command = [sys.executable, "-m", "holdfast", "pipeline", *words, "--lake", place]
                subprocess.run(command, check=True)
        return page

    def visitor(self, size: str = "desk", scheme: str = "light") -> BrowserContext:
        width, height = SIZES[size]
        dark = scheme == "dark"
        return self._browser.new_context(
            viewport={"width": width, "height": height}, color_scheme="dark" if dark else "light"
        )

    def shoot(self, name: str, pose: Callable[["Studio", Page, str], None]) -> None:
        for size in SIZES:
            for scheme in SCHEMES:
                with self.visitor(size, scheme) as context:
                    page = context.new_page()
                    pose(self, page, f"{size}-{scheme}")
                    page.screenshot(path=self._out / f"{name}-{size}-{scheme}.png", full_page=True)


def welcome(studio: Studio, page: Page, _: str) -> None:
    page.goto(studio.server.url)
    expect(page.locator("#state")).to_contain_text("Listening")


def walked(studio: Studio, page: Page, kind: str) -> None:
    """The welcome page after its last step."""
    welcome(studio, page, kind)
    page.get_by_role("button", name="Send").click()
    page.get_by_role("button", name="Refuse").click()
    page.get_by_label("token").fill((studio.data / "admin-token").read_text().strip())
    page.get_by_role("button", name="Show the letter").click()
    page.get_by_role("button", name="Replay").click()
    expect(page.locator("li.done")).to_have_count(4)


def chat_door(studio: Studio, page: Page, _: str) -> None:
    page.goto(f"{studio.server.url}/chat/", wait_until="networkidle")


def chat(studio: Studio, page: Page, _: str) -> None:
    """A conversation with a refused message, in which nothing is lost."""
    with studio.visitor() as context:
        grace = context.new_page()
        for each, name in ((page, "ada"), (grace, "grace")):
            # Joining twice leaves nothing of the picture before.
            chatting.join(each, studio.server.url, name)
            chatting.leave(each)
            chatting.join(each, studio.server.url, name)
        chatting.say(grace, "Did the deployment reach everybody?")
        chatting.say(page, "All but the laptop on the train. It was in a tunnel.")
        chatting.say(grace, "And now?")
        expect(chatting.lines(page)).to_have_count(3)
        refuse = page.locator("#refuse")
        refuse.evaluate("button => button.click()")
        chatting.say(grace, "This one is refused on purpose.")
        expect(page.locator(".refused")).to_have_count(1)
        chatting.say(page, "It is back, and has got every message, once.")
        chatting.say(grace, "Good. Not one is missing.", to="ada")
        expect(chatting.lines(page)).to_have_count(6)
        _show_the_verdict(page)


def chat_wire(studio: Studio, page: Page, kind: str) -> None:
    chat(studio, page, kind)
    if page.locator("#views").is_visible():
        page.get_by_role("button", name="Faults").click()
        _show_the_verdict(page)


def _show_the_verdict(page: Page) -> None:
    verdict = page.locator("#wire .badge.bad").last
    verdict.evaluate("badge => badge.scrollIntoView({block: 'center'})")


def console(address: Callable[[World], str]) -> Callable[[Studio, Page, str], None]:
    """The console as an operator sees it after some seconds with messages."""

    def pose(studio: Studio, page: Page, _: str) -> None:
        world = studio.world
        page.goto(f"{world.url}/console/")
        page.get_by_label("Token").fill(world.operator)
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_text("live", exact=True)).to_be_visible()
        page.goto(f"{world.url}/console/{address(world)}")
        for load in range(12 if address(world) == "#/" else 1):
            world.publish("/news", *[{"visitors": n} for n in range(20 + 15 * (load % 5))])
            page.wait_for_timeout(500)

    return pose


def console_door(studio: Studio, page: Page, _: str) -> None:
    page.goto(f"{studio.world.url}/console/", wait_until="networkidle")


def _work_queue(world: World) -> str:
    """A work queue with a receiver whose queue is full."""
    if "painter/1" not in world.talkers:
        worker = world.receiver("painter/1")
        worker.handshake(
            ext={"ack": True, "delivery": {"session": "painter/1", "queue": {"maxEntries": 1}}}
        )
        worker.send("/meta/subscribe", subscription="/jobs/*")
        world.take(worker)
    return "#/work/%2Fjobs%2Fpictures"


def _held(world: World) -> str:
    """An operator holds a channel back."""
    body = {"channel": "/news", "reason": "the newsroom moves", "until": None}
    world.ask("PUT", "held-channels", body)
    return "#/channels/%2Fnews"


def _letter(world: World) -> Any:
    return world.ask("GET", "dead-letters?code=user.update.error&limit=1")["items"][0]


def _kind(world: World) -> str:
    """A group of letters that is assigned to an operator."""
    fingerprint = _letter(world)["fingerprint"]
    said = {"assignee": "ann", "note": "The shop rounds since Tuesday; mended in its next version."}
    world.ask("PUT", f"dead-letters/groups/{fingerprint}/remark", said)
    return f"#/dead/letters?fingerprint={fingerprint}"


def _replayed(world: World) -> str:
    """The latest replay; start one if there is none."""
    wanted = {"filter": {"receiver": "bills/1"}, "dry_run": False}
    jobs = world.ask("GET", "replays")["items"]
    return str((jobs or [world.ask("POST", "replays", wanted)])[0]["id"])


def alerts(studio: Studio, page: Page, kind: str) -> None:
    """What is stuck, with alerts that are raised after ten seconds."""
    while len(studio.world.ask("GET", "now")["alerts"]["items"]) < len(LIMITS):
        page.wait_for_timeout(500)
    console(lambda _: "#/now")(studio, page, kind)


def workers(studio: Studio, page: Page, kind: str) -> None:
    """Several workers, of which one does not answer."""
    show_three(page)
    console(lambda _: "#/now")(studio, page, kind)


def report(studio: Studio, page: Page, _: str) -> None:
    page.goto(studio.report.as_uri())


def compact(studio: Studio, page: Page, kind: str) -> None:
    """A sorted list with more rows on the screen."""
    console(lambda _: "#/sessions?sort=-waiting")(studio, page, kind)
    page.get_by_role("button", name="Compact").click()


def editing(studio: Studio, page: Page, kind: str) -> None:
    console(lambda world: f"#/dead/letter/{_letter(world)['id']}")(studio, page, kind)
    page.get_by_role("button", name="Edit and send").click()
    data = page.get_by_label("Data (JSON)")
    data.fill(data.input_value().replace("4715", "4716"))
    page.get_by_role("button", name="Preview").click()
    page.get_by_text("matching letters").wait_for()


POSES: dict[str, Callable[[Studio, Page, str], None]] = {
    "welcome": welcome,
    "welcome-walked": walked,
    "chat-door": chat_door,
    "chat": chat,
    "chat-wire": chat_wire,
    "console-door": console_door,
    "console": console(lambda _: "#/"),
    "console-now": alerts,
    "console-workers": workers,
    "console-session": console(lambda _: "#/sessions/mail/1"),
    "console-dead": console(lambda _: "#/dead"),
    "console-kind": console(_kind),
    "console-edit": editing,
    "console-sessions": console(lambda _: "#/sessions"),
    "console-compact": compact,
    "console-subjects": console(lambda _: "#/subjects"),
    "console-subject": console(lambda _: "#/subjects/joe"),
    "console-work": console(lambda _: "#/work"),
    "console-work-queue": console(_work_queue),
    "console-delayed": console(lambda _: "#/delayed"),
    "console-channels": console(lambda _: "#/channels"),
    "console-channel": console(lambda _: "#/channels/%2Fprices"),
    "console-held": console(_held),
    "console-audit": console(lambda _: "#/audit"),
    "console-letter": console(lambda world: f"#/dead/letter/{_letter(world)['id']}"),
    "console-message": console(lambda world: f"#/messages/{_letter(world)['message']}"),
    "console-letters": console(lambda _: "#/dead/letters?state=new"),
    "console-where": console(lambda _: "#/messages"),
    "console-replays": console(lambda world: _replayed(world) and "#/replays"),
    "console-replay": console(lambda world: f"#/replays/{_replayed(world)}"),
    "console-results": console(lambda _: "#/results"),
    "report": report,
}


def main() -> None:
    out, chosen = Path(sys.argv[1]), sys.argv[2:] or list(POSES)
    out.mkdir(parents=True, exist_ok=True)
    home = tempfile.TemporaryDirectory(prefix="holdfast-shots-")
    data = Path(home.name)
    limits = data / "alerts.toml"
    limits.write_text("".join(f"{name} = {limit}\n" for name, limit in LIMITS.items()))
    server = Server({"journal": True, "data": home.name, "channels": RULES, "alerts": str(limits)})
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
            studio = Studio(browser, server, data, out)
            for name in chosen:
                studio.shoot(name, POSES[name])
            browser.close()
    finally:
        server.stop()
        kill_orphans_in(data)
        home.cleanup()


if __name__ == "__main__":
    main()
