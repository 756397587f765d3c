"""The site of the documentation has every page, and its links lead somewhere on it."""

from pathlib import Path

import pytest

from docs import build

DOCS = build.DOCS


@pytest.mark.parametrize(
    ("written", "on_site"),
    [
        ("[a](sessions.md#identity)", "[a](sessions.md#identity)"),
        ("[a](#here), [b](https://a.example/)", "[a](#here), [b](https://a.example/)"),
        ("[a](../../CHANGELOG.md)", "[a](changes.md)"),
        ("[a](../../README.md#install)", "[a](../README.md)"),
        ("[a](../examples/login.py)", "[a](../examples/login.py.txt)"),
        ("[an example](../examples/answers)", "[an example](../examples/answers.zip)"),
        ("[the unit](../../deploy/holdfast.socket)", "[the unit](../deploy/holdfast.socket.txt)"),
        ("[`app/x.py`](../../app/interface.py)", "`app/x.py`"),
        ("[say `a`](limits.md) `[b](c.md)`", "[say `a`](limits.md) `[b](c.md)`"),
        ("```\n[a](../../bench/README.md)\n```", "```\n[a](../../bench/README.md)\n```"),
    ],
)
def test_a_link_leads_to_a_page_of_the_site_or_names_a_file(written: str, on_site: str) -> None:
    source, place = DOCS / "reference/a.md", Path("reference/a.md")
    assert build.for_site(written, source, place) == on_site


def test_a_diagram_of_states_is_a_table() -> None:
    written = "```mermaid\nstateDiagram-v2\n    [*] --> ALIVE: a publish\n    ALIVE --> [*]\n```\n"
    source, place = DOCS / "reference/a.md", Path("reference/a.md")
    assert build.for_site(written, source, place).splitlines()[2:] == [
        "|  | a publish | ALIVE |",
        "| ALIVE |  |  |",
    ]


def test_no_page_for_readers_needs_a_script_to_draw() -> None:
    for path in DOCS.rglob("*.md"):
        if path.parent.name == "building":
            continue
        drawn = build.for_site(path.read_text("utf-8"), path, path.relative_to(DOCS))
        assert "```mermaid" not in drawn, path


def test_a_page_has_no_link_to_itself() -> None:
    written = "the [front page](../README.md)"
    assert build.for_site(written, DOCS / "README.md", Path("README.md")) == "the front page"


def test_every_page_is_in_the_order_of_reading_and_says_what_it_is_about() -> None:
    listed = [*build.entries()]
    assert {each.path for each in listed} == {
        *(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")),
        *build.GUESTS.values(),
    }
    for each in listed:
        assert each.title, each.path
        assert each.about or each.path == "reference/changes.md", each.path


def test_programs_get_a_line_for_each_page_by_its_address() -> None:
    text = build.llms()
    assert text.startswith("# Holdfast\n\n> ")
    assert "- [A chat in ten minutes](tutorials/chat/): " in text
    assert ".md" not in text.replace("CHANGELOG.md", "")
