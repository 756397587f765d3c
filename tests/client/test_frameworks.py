"""docs/tutorials/frameworks.md: users hear what is committed, and each thing once."""

import json
import os
import secrets
import shlex
import signal
import sqlite3
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import httpx
import pytest
from httpx_sse import connect_sse

from bench.processes import reserved_port
from tests.clients.mortal_server import MortalServer
from tests.pages import ROOT, blocks
from tests.serving import environment
from tests.unit.login.signing import token

EXAMPLE = "docs.examples.frameworks"
SETTINGS = tomllib.loads((ROOT / EXAMPLE.replace(".", "/") / "holdfast.toml").read_text("utf-8"))
PYTHON = ".venv/bin/python"
PAGE = blocks(ROOT / "docs" / "tutorials" / "frameworks.md")
NEEDED = {
    "fastapi": ("fastapi", "uvicorn", "itsdangerous"),
    "flask": ("flask",),
    "django": ("django",),
}
LIMIT_S = 60
PAUSE_S = 0.05
MOST = 10
PASSWORDS = {"ada": "lovelace", "grace": "hopper"}


def commands(framework: str) -> list[str]:
    """What the page says to run the application; the last command serves it."""
    [text] = [
        each.text for each in PAGE if each.language == "sh" and f"{framework}_app" in each.text
    ]
    return text.replace("\\\n", " ").splitlines()


def compiling_once(home: Path) -> dict[str, str]:
    """Variables of programs, of which many import the same, with bytecode in a common place."""
    place = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(home / "bytecode")}
    return environment() | place


class Shop:
    """One of the applications, beside a Holdfast that can be killed."""

    def __init__(self, home: Path, stack: ExitStack) -> None:
        key = home / "token-key"
        key.write_text(secrets.token_hex())
        self._key = key.read_bytes()
        self._data = home / "data"
        given = {"data": str(self._data), "login_keys": str(key)}
        self.mortal = MortalServer({**SETTINGS, **given})
        stack.callback(self.mortal.stop)
        self._log = stack.enter_context((home / "log").open("a+"))
        self._port = stack.enter_context(reserved_port())
        self._stack = stack
        self.url = f"http://127.0.0.1:{self._port}"
        self.database = home / "shop.db"
        self._known = {
            **compiling_once(home.parent),
            "HOLDFAST_URL": self.mortal.alive.url,
            "TOKEN_KEY": str(key),
            "DATABASE": str(self.database),
            "SESSION_KEY": secrets.token_hex(),
        }

    def serve(self, framework: str) -> None:
        *before, serves = commands(framework)
        for command in before:
            # The page makes one user; the tests need another, too.
            other = command.replace("ada", "grace").replace("lovelace", PASSWORDS["grace"])
            for program in [self.start(each) for each in dict.fromkeys((command, other))]:
                assert program.wait(LIMIT_S) == 0, self.log()
        serves = serves.replace("8000", str(self._port))
        program = self.start(f"{serves} --noreload" if "runserver" in serves else serves)
        while True:
            try:
                httpx.get(self.url, timeout=LIMIT_S)
            except httpx.TransportError:
                assert program.poll() is None, self.log()
                time.sleep(PAUSE_S)
            else:
                return

    def start(self, command: str, **more: str) -> subprocess.Popen[bytes]:
        """Start a command of the page; it ends with the test."""
        words = shlex.split(command)
        while "=" in words[0]:
            name, _, value = words.pop(0).partition("=")
            more[name] = value
        assert words[0] == PYTHON
        known = self._known | more
        program = subprocess.Popen(
            [sys.executable, *words[1:]], cwd=ROOT, env=known, stdout=self._log, stderr=self._log
        )
        self._stack.callback(end, program)
        return program

    def browser(self, name: str) -> "Browser":
        """The browser of a user who has logged in."""
        http = self._stack.enter_context(httpx.Client(base_url=self.url, timeout=LIMIT_S))
        browser = Browser(self, http)
        browser.log_in(name, PASSWORDS[name])
        return browser

    def log(self) -> str:
        self._log.seek(0)
        return self._log.read()

    def say(self, channel: str, data: object) -> None:
        """Publish as the application does."""
        login = token(self._key, sub="shop", groups=["backend"], aud="push")
        message = {"channel": channel, "data": data}
        headers = {"Authorization": f"Bearer {login}"}
        url = f"{self.mortal.alive.url}/publish"
        httpx.post(url, json=message, headers=headers, timeout=LIMIT_S).raise_for_status()

    def outbox(self) -> list[dict[str, Any]]:
        """What waits in the outbox."""
        with closing(sqlite3.connect(self.database)) as db:
            rows = db.execute("SELECT data FROM outbox ORDER BY id").fetchall()
        return [json.loads(data) for [data] in rows]

    def letters(self) -> list[str]:
        """The codes of the dead letters."""
        operator = (self._data / "admin-token").read_text().strip()
        headers = {"Authorization": f"Bearer {operator}"}
        url = f"{self.mortal.alive.url}/admin/api/v1/dead-letters"
        found = httpx.get(url, headers=headers, timeout=LIMIT_S).raise_for_status().json()
        return [each["code"] for each in found["items"]]


def end(program: subprocess.Popen[bytes]) -> None:
    program.kill()
    program.wait()


class Browser:
    """A browser of a user, with its cookies."""

    def __init__(self, shop: Shop, http: httpx.Client) -> None:
        self._shop = shop
        self.http = http
        self.channel = ""

    def log_in(self, name: str, password: str) -> None:
        assert self.http.get("/holdfast-token").status_code == 401
        assert self.post("/login", name=name, password="a guess").status_code == 403
        assert self.post("/login", name=name, password=password).status_code == 204
        self.channel = self.http.get("/holdfast-token").raise_for_status().json()["channel"]

    def post(self, path: str, **data: str) -> httpx.Response:
        # Django wants it.
        headers = {"X-CSRFToken": self.http.cookies.get("csrftoken") or ""}
        return self.http.post(path, json=data, headers=headers)

    def order(self, item: str) -> dict[str, Any]:
        placed: dict[str, Any] = self.post("/orders", item=item).raise_for_status().json()
        return {**placed, "item": item}

    @contextmanager
    def hearing(self) -> Iterator[Iterator[Any]]:
        """What its page hears, as `EventSource` asks for it: with nothing but the cookie."""
        url, asked = f"{self._shop.mortal.alive.url}/events", {"channel": self.channel}
        with connect_sse(self.http, "GET", url, params=asked) as source:
            source.response.raise_for_status()
            yield (json.loads(event.data)["data"] for event in source.iter_sse() if event.data)


@pytest.fixture(scope="module", params=NEEDED)
def shop(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Shop]:
    framework = request.param
    for name in NEEDED[framework]:
        pytest.importorskip(name)
    with ExitStack() as stack:
        shop = Shop(tmp_path_factory.mktemp(framework), stack)
        shop.serve(framework)
        yield shop


def test_a_user_hears_what_was_committed_and_nothing_of_what_was_rolled_back(shop: Shop) -> None:
    ada, grace = shop.browser("ada"), shop.browser("grace")
    grace.channel = ada.channel
    with pytest.raises(httpx.HTTPStatusError, match="403"), grace.hearing():
        pass
    with ada.hearing() as heard:
        placed = [ada.order(f"pear {number}") for number in range(MOST)]
        told = [next(heard) for _ in placed]
        assert sorted(told, key=number_of) == [{**each, "state": "ordered"} for each in placed]
        assert ada.post("/orders", item="one too many").status_code == 409
        shop.say(ada.channel, "last")
        assert next(heard) == "last"
    assert [job["item"] for job in shop.outbox()] == [each["item"] for each in placed]


def test_a_job_is_done_once_whatever_happens_to_the_relay_and_to_the_server(shop: Shop) -> None:
    grace = shop.browser("grace")
    subject = grace.channel.split("/")[2]
    placed = [grace.order(item) for item in ("pear", "anvil", "apple")]
    waiting = shop.outbox()
    kill_in_the_middle_of_a_publish(shop)
    assert shop.outbox() == waiting
    shop.mortal.kill()
    # The order stands, though its page is not told.
    placed.append(grace.order("plum"))
    relay = f"{PYTHON} -m {EXAMPLE}.relay {shop.database}"
    shop.start(relay)
    shop.mortal.start_again()
    until(lambda: not shop.outbox(), shop)
    with grace.hearing() as heard:
        worker = shop.start(f"{PYTHON} -m {EXAMPLE}.worker")
        # The last job; it comes behind all others, and what came twice would come before it.
        shop.say("/jobs/orders", {"order": 0, "user": subject, "item": "last"})
        packed = list(iter(lambda: next(heard), packed_of(0, "last")))
    expected = [
        packed_of(each["order"], each["item"]) for each in placed if each["item"] != "anvil"
    ]
    assert packed == expected
    until(lambda: shop.letters() == ["user.shop.tooHeavy"], shop)
    worker.send_signal(signal.SIGINT)
    assert worker.wait(LIMIT_S) == 0, shop.log()


def test_the_page_that_an_application_shows_has_the_script_that_is_explained(shop: Shop) -> None:
    [script] = [each for each in PAGE if each.language == "js"]
    assert script.text in httpx.get(f"{shop.url}/").raise_for_status().text


def test_a_relay_waits_for_the_tables_of_an_application(tmp_path: Path) -> None:
    (tmp_path / "key").write_text(secrets.token_hex())
    given = {"TOKEN_KEY": str(tmp_path / "key")}
    words = [sys.executable, "-m", f"{EXAMPLE}.relay", str(tmp_path / "shop.db")]
    around = compiling_once(tmp_path.parent) | given
    with subprocess.Popen(words, cwd=ROOT, env=around, stdout=subprocess.PIPE, text=True) as relay:
        assert relay.stdout is not None
        assert relay.stdout.readline() == "waiting for the tables of the application\n"
        relay.send_signal(signal.SIGINT)
        assert relay.wait(LIMIT_S) == 0


def test_the_test_on_the_page_needs_no_server(tmp_path: Path) -> None:
    for name in NEEDED["fastapi"]:
        pytest.importorskip(name)
    [test] = [each for each in PAGE if each.kind == "test"]
    (tmp_path / "test_page.py").write_text(test.text)
    (tmp_path / "key").write_text(secrets.token_hex())
    given = {"TOKEN_KEY": str(tmp_path / "key"), "DATABASE": str(tmp_path / "shop.db")}
    words = ["-m", "pytest", "-c", os.devnull, "--rootdir", str(tmp_path), str(tmp_path)]
    done = subprocess.run(
        [sys.executable, *words, "-p", "no:cacheprovider"],
        cwd=ROOT,
        env=compiling_once(tmp_path.parent) | given,
        capture_output=True,
        text=True,
    )
    assert " 1 passed" in done.stdout, done.stdout + done.stderr


def number_of(order: dict[str, Any]) -> int:
    number: int = order["order"]
    return number


def packed_of(order: int, item: str) -> dict[str, Any]:
    return {"order": order, "item": item, "state": "packed"}


def until(is_so: Callable[[], bool], shop: Shop) -> None:
    end_s = time.monotonic() + LIMIT_S
    while not is_so():
        assert time.monotonic() < end_s, shop.log()
        time.sleep(PAUSE_S)


def kill_in_the_middle_of_a_publish(shop: Shop) -> None:
    """Run a relay that is killed when the server has its rows, and it does not know that."""
    relays = list[subprocess.Popen[bytes]]()
    results = list[dict[str, Any]]()

    class Between(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            url = f"{shop.mortal.alive.url}{self.path}"
            headers = {"Authorization": self.headers["Authorization"]}
            response = httpx.post(url, content=body, headers=headers, timeout=LIMIT_S)
            results.extend(response.raise_for_status().json())
            end(relays[0])

    with HTTPServer(("127.0.0.1", 0), Between) as between:
        handling = Thread(target=between.handle_request)
        handling.start()
        command = f"{PYTHON} -m {EXAMPLE}.relay {shop.database}"
        url = f"http://127.0.0.1:{between.server_port}"
        relays.append(shop.start(command, HOLDFAST_URL=url))
        handling.join()
    assert len(results) == len(shop.outbox())
    assert all(each["successful"] for each in results)
