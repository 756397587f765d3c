"""A headless Chromium from the system, and pages with cometd.js in it on any origin."""

import shutil
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Route, expect, sync_playwright

from tests.clients.node_client import CLIENTS, MODULES, SWITCHED_ON, require
from tests.serving import ROOT, Server, Servers

# The settings of the server for most tests; its second name is for a page without TLS.
SETTINGS = {**SWITCHED_ON, "host_name": ["chat.test"]}
HERE = Path(__file__).parent
# The first has no windows, and takes half the processor time.
_NAMES = ("chromium-headless-shell", "chromium", "chromium-browser")
CHROMIUM = next(filter(None, map(shutil.which, _NAMES)), None)
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # Intercepted pages come from no address; to Chromium they are the internet, which may not call
    # this machine.
    "--disable-features=LocalNetworkAccessChecks,LocalNetworkAccessChecksWebSockets",
    # Names for other sites on this machine; nothing else is found.
    "--host-resolver-rules=MAP *.test 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
]
# A page that has lost its server tries again every two seconds, the console every three, and the
# machine may be busy.
TIMEOUT_MS = 30_000
expect.set_options(timeout=TIMEOUT_MS)
# As in a browser whose user forbids storage.
FORBID_STORAGE = """for (const kind of ["localStorage", "sessionStorage"]) {
    Object.defineProperty(window, kind, {get() {
        throw new DOMException("denied", "SecurityError");
    }});
}"""
# Where the files of pages are: their own, scenarios that Node plays, too, and packages.
FOLDERS = (HERE, CLIENTS / "js", MODULES)


class OpenPage(Protocol):
    """Opens a page of the tests."""

    def __call__(self, origin: str, name: str = "page.html") -> Page: ...


@dataclass(frozen=True)
class Certificate:
    """Files for TLS."""

    chain: Path
    key: Path


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put these tests last: the browser's event loop stays in this thread until the run ends."""
    items.sort(key=lambda item: item.path.is_relative_to(HERE))


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    with launched() as browser:
        yield browser


@contextmanager
def launched() -> Iterator[Browser]:
    """A browser; the thread has its event loop until this ends."""
    require(CHROMIUM, "chromium-headless-shell or chromium (make setup-debian)")
    require((MODULES / "cometd").is_dir(), "tests/clients/node_modules (make setup-clients)")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def profile(chromium: Browser) -> Iterator[BrowserContext]:
    """A new browser profile."""
    with chromium.new_context(ignore_https_errors=True) as context:
        context.set_default_timeout(TIMEOUT_MS)
        yield context


# The browser of another user.
other_profile = profile


@pytest.fixture
def cometd_js() -> None:
    """The files from npm that pages of the server need."""
    require((ROOT / "static" / "cometd").is_dir(), "static/cometd (make setup-pages)")


@pytest.fixture
def room() -> str:
    """The name of a new room."""
    return uuid.uuid4().hex[:12]


@pytest.fixture
def server(servers: Servers) -> Server:
    return servers.with_settings(SETTINGS)


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    """A self-signed certificate, valid for a day."""
    openssl = shutil.which("openssl")
    require(openssl, "openssl")
    assert openssl is not None
    home = tmp_path_factory.mktemp("certificate")
    made = Certificate(home / "chain.pem", home / "key.pem")
    command = [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1"]
    command += ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    command += ["-keyout", str(made.key), "-out", str(made.chain)]
    subprocess.run(command, check=True, capture_output=True)
    return made


@pytest.fixture
def open_page(profile: BrowserContext) -> OpenPage:
    """Opens a page as if the given origin served it."""

    def serve(route: Route) -> None:
        name = route.request.url.split("/__test__/")[1]
        path = next(filter(Path.is_file, (folder / name for folder in FOLDERS)))
        kind = "text/html" if path.suffix == ".html" else "text/javascript"
        route.fulfill(body=path.read_text(), content_type=kind)

    profile.route("**/__test__/**", serve)

    def open_at(origin: str, name: str = "page.html") -> Page:
        page = profile.new_page()
        page.goto(f"{origin}/__test__/{name}")
        page.wait_for_function("window.isReady")
        return page

    return open_at
