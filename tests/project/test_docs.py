"""The documentation says what the code does, as far as that can be told without running it."""

import ast
import re
import shlex
import tomllib
from fnmatch import fnmatch
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from docs import generate
from holdfast.bayeux.publish.qos import OPTIONS
from holdfast.bayeux.wire.errors import ErrorReply
from holdfast.cli import main
from holdfast.cli.main import COMMANDS
from holdfast.journal.schema import Kind
from holdfast.login.rights_file import read_rights
from holdfast.login.toml_file import read_toml
from holdfast.pipeline import schemas
from holdfast.settings import ChannelSettings, Settings
from holdfast.web.admin.alert_limits import AlertLimits
from holdfast.web.admin.resources import ROUTES
from holdfast.web.prometheus import process_families
from tests.pages import ROOT, Block, anchors, blocks, links, pages

PAGES = list(pages())
README = ROOT / "README.md"
STORIES = ROOT / "tests" / "conversations" / "stories"
# Most pages show the same commands.
load = cache(main.load)
# A test function, or the tests of a machine.
DEFINED = r"^((async )?def {0}\b|{0} = )"
# A story, or a test in Python or JavaScript.
SHOWN = r'`\w+\.story` "[^"]+"$|`tests/[\w/]+\.py::\w+`$|`tests/[\w/]+\.test\.js` "[^"]+"$'
METRICS = {*re.findall(r"`(holdfast_\w+)", generate.metrics())}


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def is_for_users(page: Path) -> bool:
    """Whether it is below `docs/`, not its index, and not for builders."""
    return page.parent not in (ROOT, ROOT / "docs", ROOT / "docs" / "building") and (
        ROOT / "docs" in page.parents
    )


def code_in(language: str) -> list[Block]:
    return [block for page in PAGES for block in blocks(page) if block.language == language]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_on_pages_have_existing_targets(page: Path) -> None:
    for link in links(page):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def test_the_page_of_all_pages_links_to_every_other_and_the_readme_to_it() -> None:
    everything = ROOT / "docs" / "README.md"
    assert "docs/README.md" in links(README)
    linked = {(everything.parent / link).resolve() for link in links(everything)}
    assert {page for page in PAGES if page != everything} <= linked


@pytest.mark.parametrize("page", [each for each in PAGES if is_for_users(each)], ids=name_of)
def test_each_page_for_users_ends_with_what_to_read_next(page: Path) -> None:
    *_, last = page.read_text("utf-8").strip().split("\n\n")
    is_list = re.search(
        r"^## .*[Nn]ext.*\n\n" + re.escape(last), page.read_text("utf-8"), re.MULTILINE
    )
    assert last.startswith("**Next:** [") or is_list
    assert re.search(r"\]\([^)]+\.md[)#]", last)


def test_the_readme_is_short() -> None:
    assert len(README.read_text().splitlines()) <= 150


def test_the_page_of_the_administration_has_every_path() -> None:
    page = (ROOT / "docs" / "reference" / "administration.md").read_text()
    samples = {
        **{"subject": "joe", "number": "1", "result": "dead"},
        **{"fingerprint": "FINGERPRINT", "host": "a.example"},
    }
    for route in ROUTES:
        path = re.sub(r"\{(\w+)\}", lambda found: samples.get(found[1], "ID"), route.path)
        assert re.search(re.escape(path) + r"\b(?!/)", page), path


def test_contributors_find_every_folder_and_what_is_beside_them() -> None:
    ignored = {line.strip("/") for line in (ROOT / ".gitignore").read_text().splitlines()}
    here = {path.name for path in ROOT.iterdir()} - ignored
    app = {f"app/{path.name}" for path in (ROOT / "app").iterdir() if not path.is_symlink()}
    wanted = {name for name in here if not name.startswith(".")} | {".ci", ".github"}
    wanted |= {name for name in app if "__" not in name and not name.endswith("py.typed")}
    page = (ROOT / "CONTRIBUTING.md").read_text()
    section = page.partition("## Where things are")[2].partition("\n## ")[0]
    named = {*re.findall(r"`([^`]+)`", section), *re.findall(r"\(([^)]+)\)", section)}
    named |= {name.partition("/")[0] for name in named} | {"README.md", *links(README)}
    assert {name for name in wanted if not any(fnmatch(name, each) for each in named)} == set()


@pytest.mark.parametrize("table", generate.TABLES)
def test_generated_tables_match_the_code(table: str) -> None:
    page, text = generate.renewed(table)
    assert page.read_text("utf-8") == text, "python -m docs.generate"


def test_the_page_of_delivery_has_every_option_of_a_publish() -> None:
    page = (ROOT / "docs" / "reference" / "delivery.md").read_text()
    section = page.partition("## Options of a publish")[2].partition("\n## ")[0]
    told = {*re.findall(r"\w+", " ".join(re.findall(r"`[^`]+`", section)))}
    assert {option.name for option in OPTIONS} <= told


def test_every_setting_of_channels_is_explained() -> None:
    assert all(field.description for field in ChannelSettings.model_fields.values())


def test_the_page_of_limits_has_every_limit_with_its_default() -> None:
    page = (ROOT / "docs" / "reference" / "limits.md").read_text()
    rows = re.findall(r"^\| [^|]+ \| `(\w+)` \| (\d+) \|", page, re.MULTILINE)
    limits = {name: int(default) for name, default in rows}
    assert limits == {name: Settings.model_fields[name].get_default() for name in limits}
    bounded = {name for name in Settings.model_fields if re.match("max_(?!interval|lazy|in)", name)}
    assert bounded <= limits.keys()


@pytest.mark.parametrize(
    ("table", "schema"),
    [
        ("events", f"{schemas.JOURNAL}, d date"),
        ("life", schemas.LIFE),
        ("messages", schemas.MESSAGE),
        ("lost", schemas.LOST),
        ("latency", schemas.LATENCY),
    ],
)
def test_the_page_of_tables_has_every_column_with_its_type(table: str, schema: str) -> None:
    page = (
        (ROOT / "docs" / "reference" / "tables.md")
        .read_text()
        .replace("&lt;", "<")
        .replace("&gt;", ">")
    )
    rows = page.partition(f"| Column of `{table}` |")[2].partition("\n\n")[0]
    told = list[tuple[str, ...]]()
    for names, types in re.findall(r"^\| (`[^|]+) \| ([^|]+) \|", rows, re.MULTILINE):
        columns, kinds = re.findall(r"`(\w+)`", names), types.split(", ")
        # One type may be that of all columns in a row.
        told += zip(columns, kinds * (len(columns) if len(kinds) == 1 else 1), strict=True)
    assert sorted(told) == sorted(tuple(column.split()) for column in schema.split(", "))


def test_the_page_of_tables_has_every_kind_of_event() -> None:
    page = (ROOT / "docs" / "reference" / "tables.md").read_text()
    section = page.partition("### Kinds of events")[2].partition("\n### ")[0]
    told = re.findall(r"`(\w+)`", " ".join(re.findall(r"^\| (`[^|]+) \|", section, re.MULTILINE)))
    kinds = {getattr(Kind, name) for name in dir(Kind) if name.isupper()}
    assert {*told} == kinds


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_flags_of_the_server_on_pages_exist(page: Path) -> None:
    options = load("serve").params
    known = {name for option in options for name in option.opts + option.secondary_opts}
    lines = re.findall(r'(?:holdfast serve|make run ARGS=")([^\n"#]*)', page.read_text())
    flags = {word for line in lines for word in line.split() if word.startswith("--")}
    assert flags <= known | {"--help`"}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_commands_on_pages_exist_and_have_the_options_shown(page: Path) -> None:
    for line in commands_of(page):
        name, *words = shlex.split(line, comments=True)
        command: Any = load(name)
        while words and words[0] in getattr(command, "commands", {}):
            command = command.commands[words.pop(0)]
        is_group = hasattr(command, "commands")
        assert not is_group or all(word.startswith("--") for word in words), line
        known = {name for each in command.params for name in each.opts + each.secondary_opts}
        asked = {word.partition("=")[0] for word in words if word.startswith("--")}
        assert asked <= known | {"--help", "--version"}, line


def commands_of(page: Path) -> list[str]:
    """The words after `holdfast` in commands and tables, up to the end of one command."""
    text = page.read_text("utf-8").replace("\\\n", " ")
    found = re.findall(
        r"^(?:\| `)?(?:\.venv/bin/)?holdfast ([a-z](?:'[^'\n]*'|[^\n|>&`])*)", text, re.MULTILINE
    )
    return [line for line in found if line.split()[0] in COMMANDS]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_make_targets_on_pages_exist(page: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert (
        set(re.findall(r"\bmake ([a-z-]+)\b(?=[`\s]*(?:ARGS|`|#|$))", page.read_text())) <= targets
    )


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_metrics_on_pages_exist(page: Path) -> None:
    assert set(re.findall(r"`(holdfast_\w+)", page.read_text())) <= METRICS


def test_the_page_of_metrics_shows_the_release_of_the_sources_whatever_is_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = generate.metrics()
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert f"`version`: {version}, " in table
    monkeypatch.setattr(process_families, "_BUILD", ["0.0.1", "3.99.0", "interpreted"])
    assert generate.metrics() == table


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_errors_of_the_wire_that_pages_name_exist(page: Path) -> None:
    named = re.findall(r"\b\d{3} `([a-z]+_\w+)`|`\d{3}:[^`]*:([a-z_]+)`", page.read_text())
    # Clients themselves say that a session was lost.
    known = {reply.name.lower() for reply in ErrorReply} | {"session_lost"}
    assert {*filter(None, chain.from_iterable(named))} <= known


def test_settings_in_examples_are_accepted() -> None:
    examples = code_in("toml")
    assert examples
    for block in examples:
        if "[[rule]]" in block.text or "[administration]" in block.text:
            assert read_rights(block.text.encode()).rules
        elif block.text.startswith("# alerts.toml"):
            assert read_toml(block.text.encode(), AlertLimits) != AlertLimits()
        else:
            Settings(**tomllib.loads(block.text))


def test_every_attack_has_a_test_or_is_not_applicable() -> None:
    page = (ROOT / "docs" / "building" / "attacks.md").read_text()
    rows = re.findall(r"^\| S(\d+) \| [^|]+ \| ([^|]+) \|$", page, re.MULTILINE)
    assert [int(number) for number, _ in rows] == [*range(1, 48)]
    for number, shown in rows:
        assert "`tests/" in shown or shown.startswith("not applicable: "), number


def test_python_examples_on_pages_compile() -> None:
    examples = code_in("python")
    assert examples
    for block in examples:
        compile(block.text, "example", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


def test_every_scenario_of_xmlblaster_cites_tests_or_says_why_not() -> None:
    page = (ROOT / "docs" / "building" / "scenarios.md").read_text()
    rows = re.findall(r"^\| S(\d\d) \| [^|]+ \| ([^|]+) \|$", page, re.MULTILINE)
    assert [int(number) for number, _ in rows] == [*range(1, 78)]
    for number, shown in rows:
        for each in shown.split("<br>"):
            assert re.match(SHOWN, each) or re.match("(left out|not yet): .", each), number


@pytest.mark.parametrize(
    "name", ["building/invariants.md", "building/attacks.md", "building/scenarios.md"]
)
def test_stories_and_tests_that_a_page_cites_exist(name: str) -> None:
    page = (ROOT / "docs" / name).read_text()
    stories = re.findall(r'`(\w+\.story)` "([^"]+)"', page)
    tests = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", page)
    assert stories
    assert tests
    for story, title in stories:
        assert f"# {title}\n" in (STORIES / story).read_text(), title
    for path, test in tests:
        assert re.search(DEFINED.format(test), (ROOT / path).read_text(), re.MULTILINE), test
    for path, title in re.findall(r'`(tests/[\w/]+\.test\.js)` "([^"]+)"', page):
        assert f'test("{title}"' in (ROOT / path).read_text(), title
    for path in re.findall(r"`((?:app|docs)/[\w/]+\.py)`", page):
        assert (ROOT / path).is_file(), path


def test_every_module_that_the_architecture_page_points_to_exists() -> None:
    page = (ROOT / "docs" / "building" / "architecture.md").read_text()
    paths = re.findall(
        r"`([\w/]+\.py)`", page.partition("## Where to look")[2].partition("\n## ")[0]
    )
    assert len(paths) > 20
    for path in paths:
        # The pipeline and its reports are beside the other packages.
        homes = (ROOT / "app", ROOT, ROOT / "pipeline")
        assert any((home / path).is_file() for home in homes), path
