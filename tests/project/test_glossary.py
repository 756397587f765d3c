"""A word in a name of the code means what the glossary says."""

import re
from collections import Counter
from collections.abc import Iterator

from tests.pages import ROOT

GLOSSARY = (ROOT / "docs" / "glossary.md").read_text("utf-8")
ROW = re.compile(r"^\| (?!Word\b|---)([^|]+?) \|", re.MULTILINE)

# Words that mean in a name what they mean in any other program.
ORDINARY = {
    "access",
    "activity",
    "buffer",
    "builder",
    "busy",
    "cause",
    "cell",
    "chain",
    "child",
    "cleared",
    "closed",
    "collector",
    "decoder",
    "default",
    "deflate",
    "description",
    "details",
    "due",
    "ended",
    "environment",
    "exception",
    "exit",
    "factory",
    "file",
    "gzip",
    "hop",
    "illegal",
    "import",
    "installed",
    "interrupted",
    "invalid",
    "items",
    "level",
    "loaded",
    "monitor",
    "partial",
    "query",
    "remote",
    "resp",
    "review",
    "schemas",
    "scope",
    "search",
    "security",
    "source",
    "static",
    "statistics",
    "status",
    "step",
    "storage",
    "summary",
    "sync",
    "system",
    "timestamp",
    "transition",
    "trimmed",
    "unconnected",
    "unread",
    "unusable",
    "unwritten",
    "url",
}


def class_names() -> Iterator[str]:
    for folder in ("app", "extensions"):
        for path in (ROOT / folder).rglob("*.py"):
            yield from re.findall(r"^class ([A-Z]\w*)", path.read_text("utf-8"), re.MULTILINE)


def forms_of(word: str) -> set[str]:
    """The word, and what it may be a form of: letters, held, refusals."""
    return {
        word,
        f"{word}s",
        word.removesuffix("s"),
        word.removesuffix("es"),
        re.sub("ies$", "y", word),
        word.removesuffix("ed"),
        word.removesuffix("d"),
        word.removesuffix("ing"),
        re.sub("ing$", "e", word),
    }


def test_every_word_of_a_class_name_is_in_the_glossary_or_ordinary() -> None:
    known = set(re.findall("[a-z]+", GLOSSARY.lower())) | ORDINARY
    unknown = {
        name: word
        for name in class_names()
        for word in re.findall("[a-z0-9]+", re.sub("([A-Z])", r" \1", name).lower())
        if not forms_of(word) & known
    }
    assert unknown == {}


def test_no_word_is_explained_twice() -> None:
    words = Counter(word.strip() for row in ROW.findall(GLOSSARY) for word in row.split(","))
    assert [word for word, times in words.items() if times > 1] == []
