"""One thing has one word: in names of the code, in metrics, in the REST API and in pages."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from holdfast.cli.main import COMMANDS
from holdfast.settings import Settings
from holdfast.web.admin.openapi import describe
from holdfast.web.admin.resources import ROUTES
from tests.pages import ROOT, pages, prose

GLOSSARY = (ROOT / "docs" / "building" / "glossary.md").read_text("utf-8")
WORDS, NOT_USED = GLOSSARY.split("\n## One word for one thing\n")
ROW = re.compile(r"^\| (?!Word\b|Not\b|---)([^|]+?) \| (.+) \|$", re.MULTILINE)
FOLDERS = ("app", "extensions", "pipeline")
DEFINED = re.compile(r"^ *(?:async )?(?:def|class) _*([A-Za-z]\w*)", re.MULTILINE)
ENDING = re.compile(r"(?<=...)(s|es|ed|d|ing)$")

# Pages that may use the words of others: of other servers, or of earlier releases.
OF_OTHERS = {"comparison.md", "glossary.md", "CHANGELOG.md"}

# How entries move has five verbs, in docs/building/architecture.md. These were others for the same.
OTHER_VERBS = re.compile(
    r"_*(take|give|pass|move|put)_(back|out|away|in|on)(_|\b)|_*(relieve|withdraw|change_hands)"
)


def instead() -> dict[str, str]:
    """Return the words that are not used, each with the word to use."""
    return {word: use for row, use in ROW.findall(NOT_USED) for word in row.split(", ")}


def words_of(name: str) -> list[str]:
    """Return the words of a name in any style: `SessionName`, `session_name`, `sessionName`."""
    return re.findall("[a-z]+", re.sub("([A-Z])", r" \1", name).lower())


def wrong_in(names: Iterable[str]) -> dict[str, str]:
    """Return the names with a word that has a better one, and that one."""
    wrong = instead()
    return {
        name: wrong[form]
        for name in names
        for word in words_of(name)
        for form in (word, ENDING.sub("", word))
        if form in wrong
    }


def names_of_the_code() -> Iterator[str]:
    """Yield modules, folders, classes and functions."""
    for folder in FOLDERS:
        for path in (ROOT / folder).rglob("*.py"):
            yield from path.relative_to(ROOT / folder).with_suffix("").parts
            yield from DEFINED.findall(path.read_text("utf-8"))


def names_of_metrics() -> list[str]:
    metrics = (ROOT / "app" / "web" / "prometheus" / "metric_families.py").read_text("utf-8")
    return re.findall(r'"holdfast_(\w+)"', metrics)


def names_in_rest(description: Any) -> Iterator[str]:
    """Yield fields of requests and answers, and parameters, in an OpenAPI description."""
    if isinstance(description, list):
        for each in description:
            yield from names_in_rest(each)
    elif isinstance(description, dict):
        yield from description.get("properties", ())
        if "in" in description:
            yield description["name"]
        for each in description.values():
            yield from names_in_rest(each)


def test_no_module_class_or_function_has_a_second_word_for_a_thing() -> None:
    names = {*names_of_the_code()}
    assert names >= {"CallbackQueue", "hand_over", "dead_letter"}
    assert wrong_in(names) == {}


def test_entries_move_by_five_verbs() -> None:
    architecture = (ROOT / "docs" / "building" / "architecture.md").read_text("utf-8")
    section = architecture.partition("### How an entry moves\n")[2].partition("\n## ")[0]
    assert len(re.findall(r"^\| (?!Verb|---)", section, re.MULTILINE)) == 5
    functions = {
        name
        for path in (ROOT / "app" / "delivery").glob("[qsw]*/*.py")
        for name in DEFINED.findall(path.read_text("utf-8"))
    }
    assert functions >= {"hand_over", "return_all", "assign_to", "requeue_all", "remove_routed"}
    assert {name for name in functions if OTHER_VERBS.match(name)} == set()


def test_no_metric_has_a_second_word_for_a_thing() -> None:
    assert len(names_of_metrics()) > 40
    assert wrong_in(names_of_metrics()) == {}


def test_no_field_of_the_rest_api_has_a_second_word_for_a_thing() -> None:
    fields = {*names_in_rest(describe(ROUTES, "/"))}
    assert fields >= {"fingerprint", "dry_run"}
    assert wrong_in(fields) == {}


def test_no_setting_or_command_has_a_second_word_for_a_thing() -> None:
    assert wrong_in([*Settings.model_fields, *COMMANDS]) == {}


def test_no_page_has_a_second_word_for_a_thing() -> None:
    wrong = {
        (page.name, word): use
        for page in pages()
        if page.name not in OF_OTHERS and page.parent.name != "migrate"
        for word, use in wrong_in(re.findall(r"[A-Za-z]+", prose(page))).items()
    }
    assert wrong == {}


def test_names_in_every_style_and_other_forms_of_a_word_are_recognised() -> None:
    names = ["EmitsEvent", "consumer_count", "unackedTtl", "SentEvent", "receiver_count"]
    assert wrong_in(names) == {
        "EmitsEvent": "publish",
        "consumer_count": "receiver",
        "unackedTtl": "lifetime",
    }


def test_no_word_is_explained_twice() -> None:
    words = Counter(word.strip() for row, _ in ROW.findall(WORDS) for word in row.split(","))
    assert [word for word, times in words.items() if times > 1] == []
    assert len(words) > 50


def test_no_word_has_two_meanings() -> None:
    """A second one would begin with `also`, or say of what else it is the word."""
    second = re.compile(r"\balso\b|\. (Of|In|For) (an? |the )", re.IGNORECASE)
    assert [word for word, meaning in ROW.findall(WORDS) if second.search(meaning)] == []


def test_no_word_that_is_not_used_is_explained_or_used_in_an_explanation() -> None:
    assert wrong_in(re.findall(r"[A-Za-z]+", re.sub("`[^`]*`", "", WORDS))) == {}
    used = {word for use in instead().values() for word in use.split(", ")}
    assert wrong_in(used) == {}
