"""The examples in docs/how-to/python-client.md run in their order and print what the page shows."""

import inspect
import re
from itertools import pairwise
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from holdfast import Client, ClientError, WrongUse, client
from tests.client.cells import run_cells
from tests.pages import ROOT, USUAL_PLACE, blocks
from tests.serving import Server, Servers

PAGE = ROOT / "docs" / "how-to" / "python-client.md"
BLOCKS = blocks(PAGE)


@pytest.fixture
def server(servers: Servers) -> Server:
    return servers.with_settings({})


async def test_the_examples_of_the_page_print_what_it_shows(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "token").write_text((server.data / "admin-token").read_text())
    monkeypatch.chdir(tmp_path)
    cells = [block.text for block in BLOCKS if block.language == "python"]
    place = urlsplit(server.url).netloc
    said = await run_cells(cell.replace(USUAL_PLACE, place) for cell in cells)
    followers = {a.text: b for a, b in pairwise(BLOCKS) if a.language == "python"}
    for cell, printed in zip(cells, said, strict=True):
        follower = followers.get(cell)
        expected = follower.text if follower is not None and not follower.language else ""
        assert printed == expected, cell


def first_cells(heading: str) -> dict[str, str]:
    """The names in the table under a heading, with the cells beside them."""
    section = PAGE.read_text().partition(f"## {heading}\n")[2].partition("\n## ")[0]
    return dict(re.findall(r"^\| `(\w+)` \| ([^|]+) \|", section, re.MULTILINE))


def test_the_page_explains_all_options_with_their_defaults() -> None:
    parameters = inspect.signature(Client).parameters.values()
    options = {each.name: each.default for each in parameters if each.name != "url"}
    defaults = {name: f"`{default!r}`".replace("'", '"') for name, default in options.items()}
    assert first_cells("Options") == defaults


def test_the_page_explains_all_attributes_of_messages() -> None:
    of_the_client = {"has_begun", "is_returned", "left", "refusal", "seq"}
    names = {name for name in vars(client.Message) if not name.startswith("_")}
    assert {*first_cells("Messages")} == names - of_the_client


def test_the_page_explains_all_errors() -> None:
    raised = {
        name
        for name in client.__all__
        if issubclass(getattr(client, name), ClientError | WrongUse) and name != "ClientError"
    }
    assert {*first_cells("Errors")} == raised
