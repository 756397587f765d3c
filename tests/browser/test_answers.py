"""docs/tutorials/answers.md: an answer survives reloads, restarts and a tool that fails."""

import os
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, Route, expect

from tests.clients.mortal_server import MortalServer
from tests.pages import ROOT
from tests.serving import environment

EXAMPLE = ROOT / "docs" / "examples" / "answers"
SETTINGS = tomllib.loads((EXAMPLE / "holdfast.toml").read_text("utf-8"))
[ORIGIN] = SETTINGS["allow_origin"]
THOUGHTS = "You would like to know: {} Let me see what I can find out. "
WEATHER = "How is the weather in Paris?"
Start = Callable[[str], subprocess.Popen[str]]


@pytest.fixture
def mortal(tmp_path: Path) -> Iterator[MortalServer]:
    mortal = MortalServer({**SETTINGS, "data": str(tmp_path / "data")})
    yield mortal
    mortal.stop()


@pytest.fixture
def start_agent(mortal: MortalServer, tmp_path: Path) -> Iterator[Start]:
    """Starts an agent with a number, whose tool looks for its file in `tmp_path`."""
    agents = list[subprocess.Popen[str]]()

    def start(number: str) -> subprocess.Popen[str]:
        words = [sys.executable, str(EXAMPLE / "agent.py"), mortal.alive.url, number]
        agent = subprocess.Popen(
            words, cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, text=True
        )
        agents.append(agent)
        assert agent.stdout is not None
        assert agent.stdout.readline() == "ready\n"
        return agent

    yield start
    for agent in agents:
        agent.kill()
        agent.communicate()


@pytest.fixture
def page(profile: BrowserContext, mortal: MortalServer) -> Page:
    """The page, from the origin at which docs/tutorials/answers.md serves it."""

    def serve(route: Route) -> None:
        name = route.request.url.removeprefix(f"{ORIGIN}/").partition("#")[0]
        path = EXAMPLE / (name or "index.html")
        kind = "text/html" if path.suffix == ".html" else "text/javascript"
        text = path.read_text("utf-8").replace("http://localhost:8080", mortal.alive.url)
        route.fulfill(body=text, content_type=kind)

    profile.route(f"{ORIGIN}/**", serve)
    page = profile.new_page()
    page.goto(f"{ORIGIN}/")
    return page


def ask(page: Page, question: str) -> None:
    page.get_by_label("Question").fill(question)
    page.get_by_role("button", name="Ask").click()


def answer(page: Page) -> Any:
    return page.locator("#answer")


def is_shown(page: Page, question: str, end: str) -> None:
    """The whole answer is there, nothing missing and nothing twice."""
    expect(page.get_by_role("status")).to_have_text("answered")
    expect(page.locator("#question")).to_have_text(question)
    page.wait_for_function(
        "(whole) => document.querySelector('#answer').textContent === whole",
        arg=THOUGHTS.format(question) + end,
    )


def second_tab(page: Page) -> Page:
    other = page.context.new_page()
    other.goto(page.url)
    return other


def test_an_answer_survives_a_reload_a_second_tab_and_a_restart(
    mortal: MortalServer, start_agent: Start, page: Page
) -> None:
    question, end = " ".join(["And then?"] * 20), "I have found nothing."
    start_agent("1")
    ask(page, question)
    expect(answer(page)).to_contain_text("You would")
    page.reload()
    other = second_tab(page)
    expect(other.locator("#answer")).to_contain_text("like to")
    expect(other.get_by_role("status")).to_have_text("")
    mortal.stop_and_start()
    is_shown(page, question, end)
    is_shown(other, question, end)
    page.reload()
    is_shown(page, question, end)


def test_an_answer_whose_agent_is_killed_is_finished_by_another(
    start_agent: Start, page: Page
) -> None:
    first = start_agent("1")
    ask(page, "Why?")
    expect(answer(page)).to_contain_text("like to")
    first.kill()
    start_agent("2")
    is_shown(page, "Why?", "I have found nothing.")


def test_a_question_whose_tool_fails_is_a_dead_letter_until_it_is_replayed(
    mortal: MortalServer, start_agent: Start, page: Page, tmp_path: Path
) -> None:
    start_agent("1")
    ask(page, WEATHER)
    status = page.get_by_role("status")
    expect(status).to_contain_text("No weather: weather.txt cannot be read.")
    letters = holdfast(mortal, tmp_path / "data", "dead", "list", "--channel", "/questions")
    assert "user.tool.weather" in letters
    (tmp_path / "weather.txt").write_text("Sunny, 21 degrees.\n")
    page.reload()
    expect(status).to_contain_text("No weather: weather.txt cannot be read.")
    holdfast(mortal, tmp_path / "data", "dead", "replay", "--channel", "/questions", "--yes")
    is_shown(page, WEATHER, "Sunny, 21 degrees.")
    is_shown(second_tab(page), WEATHER, "Sunny, 21 degrees.")


def holdfast(mortal: MortalServer, home: Path, *words: str) -> str:
    """Run a command of docs/tutorials/answers.md; return what it prints."""
    known = environment() | {
        "HOLDFAST_URL": mortal.alive.url,
        "HOLDFAST_TOKEN_FILE": os.fspath(home / "admin-token"),
        "COLUMNS": "200",
    }
    command = [sys.executable, "-m", "holdfast", *words]
    done = subprocess.run(command, env=known, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
