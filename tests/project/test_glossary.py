"""A word in a name of the code, a metric or the REST API means what the glossary says."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

from holdfast.cli.main import COMMANDS
from holdfast.web.admin.openapi import describe
from holdfast.web.admin.resources import ROUTES
from tests.pages import ROOT

GLOSSARY = (ROOT / "docs" / "glossary.md").read_text("utf-8")
ROW = re.compile(r"^\| (?!Word\b|---)([^|]+?) \| (.+) \|$", re.MULTILINE)
FOLDERS = ("app", "extensions", "pipeline")

# Words that mean in a name what they mean to anybody who speaks English,
ENGLISH = """
    about access active again all any at base basics before begun behind busy by cannot cause
    cell changed chat check child cleared closed configured content control count created day
    default description detail died dry effect environment extending field file first for form
    forward found from full given gives hop hour illegal incoming info installed interrupted
    invalid is item keep last lately later level line list long longest look made main making
    manual match max measure model moment monitor newest next number oldest on only out
    parameter part person process progress protocol range read reason received remote respond
    rest row sample search second seen send sent serve since sort statistic suggestion take
    taken text then title total two unit unreachable until unusable value version way who
"""
# what they mean to anybody who writes Python,
PYTHON = """
    buffer builder bytes codec collector decoder encoding exception exit factory flag id
    import log output parser prefix query response static sync
"""
# or what others have named so: formats, protocols, programs, units.
FOREIGN = """
    aiohttp arrow bayeux cli cookie deflate delta duck duckdb gzip host html http java json ms n
    ndjson openapi p python resp socket spark toml url websocket xmsg
"""

# It makes other forms of a word: letters, held, refusal, journaling.
ENDING = re.compile("(?<=..)(ations?|ments?|ings?|ions?|als?|ies?|e[ds]|[sey])$")


def stem_of(word: str) -> str:
    """What is common to all forms of a word."""
    stem = ENDING.sub("", word)
    if stem == word:
        return word
    # As in stopped, but not as in skills or passes.
    is_doubled = len(stem) > 3 and stem[-1] == stem[-2] and stem[-1] not in "ls"
    return stem_of(stem[:-1] if is_doubled else stem)


def words_of(name: str) -> list[str]:
    """The words of a name in any style: `SessionName`, `session_name`, `sessionName`."""
    return re.findall("[a-z]+", re.sub("([A-Z])", r" \1", name).lower())


def defined_words() -> Iterator[str]:
    """Those that have a row of the glossary, or are italic in one."""
    for row, meaning in ROW.findall(GLOSSARY):
        yield from words_of(row.lower())
        for italic in re.findall(r"\*([^*]+)\*", re.sub("`[^`]*`", "", meaning)):
            yield from words_of(italic.lower())


def names_of_the_code() -> Iterator[str]:
    """Its modules and folders, without those named after a command, and its classes."""
    for folder in FOLDERS:
        for path in (ROOT / folder).rglob("*.py"):
            parts = path.relative_to(ROOT / folder).with_suffix("").parts
            yield from [part for part in parts if part not in {*COMMANDS, "__init__"}]
            yield from re.findall(r"^class _?([A-Z]\w*)", path.read_text("utf-8"), re.MULTILINE)


def names_of_metrics() -> list[str]:
    metrics = (ROOT / "app" / "web" / "metric_families.py").read_text("utf-8")
    return re.findall(r'"holdfast_(\w+)"', metrics)


def names_in_rest(description: Any) -> Iterator[str]:
    """Fields of requests and answers, and parameters, in an OpenAPI description."""
    if isinstance(description, list):
        for each in description:
            yield from names_in_rest(each)
    elif isinstance(description, dict):
        yield from description.get("properties", ())
        if "in" in description:
            yield description["name"]
        for each in description.values():
            yield from names_in_rest(each)


def unknown_in(names: Iterable[str]) -> dict[str, str]:
    """Names with a word that is neither defined nor ordinary, and that word."""
    ordinary = f"{ENGLISH} {PYTHON} {FOREIGN}".split()
    known = {stem_of(word) for word in chain(defined_words(), ordinary)}
    return {name: word for name in names for word in words_of(name) if stem_of(word) not in known}


def test_every_word_of_a_class_or_module_name_is_defined_or_ordinary() -> None:
    assert unknown_in(names_of_the_code()) == {}


def test_every_word_of_a_metric_is_defined_or_ordinary() -> None:
    assert len(names_of_metrics()) > 40
    assert unknown_in(names_of_metrics()) == {}


def test_every_word_of_a_field_in_the_rest_api_is_defined_or_ordinary() -> None:
    fields = {*names_in_rest(describe(ROUTES, "/"))}
    assert fields >= {"fingerprint", "dry_run"}
    assert unknown_in(fields) == {}


def test_words_that_the_glossary_does_not_define_are_unknown() -> None:
    """Not even if its definitions use them."""
    assert unknown_in(["SubscribeVibrantly", "entity_table"]) == {
        "SubscribeVibrantly": "vibrantly",
        "entity_table": "entity",
    }
    assert "growing" in GLOSSARY
    assert unknown_in(["growing"]) == {"growing": "growing"}


def test_no_ordinary_word_is_listed_that_the_glossary_defines() -> None:
    defined = {stem_of(word) for word in defined_words()}
    ordinary = f"{ENGLISH} {PYTHON} {FOREIGN}".split()
    assert [word for word in ordinary if stem_of(word) in defined] == []


def test_no_word_is_explained_twice() -> None:
    words = Counter(word.strip() for row, _ in ROW.findall(GLOSSARY) for word in row.split(","))
    assert [word for word, times in words.items() if times > 1] == []
