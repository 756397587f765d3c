"""The welcome page offers only pages that its own listener serves."""

import http.client
import re
from contextlib import closing
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import pytest

from tests.serving import PACKAGE
from tests.web.programs import admin_url, program

# If it was built.
DOCS = {"/docs/"} if (PACKAGE / "static/docs/policy.txt").is_file() else set[str]()
CARD = re.compile(r'<a class="card" href="([^"]+)"')
LINK = re.compile(r'<a [^>]*href="([^"]+)"')


def read(url: str) -> tuple[int, str]:
    parts = urlsplit(url)
    with closing(http.client.HTTPConnection(parts.netloc)) as connection:
        connection.request("GET", parts.path)
        response = connection.getresponse()
        return response.status, response.read().decode()


def cards(url: str) -> set[str]:
    """The cards of the page; each of its links must lead somewhere."""
    status, text = read(url)
    assert status == 200
    assert "<!-- " not in text
    assert "$path" not in text
    for link in LINK.findall(text):
        if not link.startswith("https:"):
            assert read(urljoin(url, link))[0] == 200, link
    return set(CARD.findall(text))


@pytest.mark.parametrize(
    ("flags", "offered"),
    [
        ([], {"chat/", "console/"}),
        (["--no-chat"], {"console/"}),
        (["--admin", "127.0.0.1:0"], {"chat/"}),
        (["--admin", "127.0.0.1:0", "--no-chat"], set()),
    ],
    ids=" ".join,
)
def test_the_cards_lead_to_the_pages_that_the_server_serves(
    flags: list[str], offered: set[str], tmp_path: Path
) -> None:
    with program("--port", "0", *flags, home=tmp_path) as running:
        assert cards(urljoin(running.place(), "/")) == offered | DOCS


def test_the_operators_listener_leads_to_the_console(tmp_path: Path) -> None:
    with program("--port", "0", "--admin", "127.0.0.1:0", home=tmp_path) as running:
        running.place()
        place = urlsplit(admin_url(running)).netloc
        with closing(http.client.HTTPConnection(place)) as connection:
            connection.request("GET", "/")
            response = connection.getresponse()
            assert (response.status, response.headers["Location"]) == (302, "console/")


def test_the_page_knows_the_servers_path_and_transports(tmp_path: Path) -> None:
    flags = ["--port", "0", "--paths", "/it's/here", "--transports", "long-polling"]
    with program(*flags, home=tmp_path) as running:
        url = urljoin(running.place(), "/")
        welcome, chat = read(url)[1], read(url + "chat/")[1]
        assert 'data-scheme="http">/it&#x27;s/here<' in welcome
        assert '<meta name="bayeux" content="/it&#x27;s/here">' in welcome
        assert "WebSocket</dt>" not in welcome
        assert '<meta name="bayeux" content="/it&#x27;s/here">' in chat


def test_a_folder_without_its_slash_is_found(tmp_path: Path) -> None:
    with program("--port", "0", home=tmp_path) as running:
        place = urlsplit(running.place()).netloc
        for folder in ("chat", "console"):
            with closing(http.client.HTTPConnection(place)) as connection:
                connection.request("GET", f"/{folder}")
                response = connection.getresponse()
                assert (response.status, response.headers["Location"]) == (308, f"{folder}/")
