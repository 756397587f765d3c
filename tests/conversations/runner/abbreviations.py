"""Sentences that stand for lines of a story; abbreviations.txt lists them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

HOLE = re.compile(r"\b[A-Z]+\b")


@dataclass(frozen=True, slots=True)
class Abbreviation:
    sentence: re.Pattern[str]
    lines: tuple[str, ...]

    def expanded(self, line: str) -> list[str] | None:
        found = self.sentence.fullmatch(line)
        if found is None:
            return None
        values = found.groupdict()
        return [HOLE.sub(lambda hole: values.get(hole[0], hole[0]), line) for line in self.lines]


def read_abbreviations(text: str) -> Iterator[Abbreviation]:
    for paragraph in text.split("\n\n"):
        lines = [line for line in paragraph.splitlines() if line and not line.startswith("--")]
        if lines:
            sentence, *steps = lines
            yield Abbreviation(sentence_pattern(sentence.strip()), tuple(steps))


def sentence_pattern(sentence: str) -> re.Pattern[str]:
    def group(hole: re.Match[str]) -> str:
        kind = r"[a-z]+" if hole[0] == "NAME" else r"\S.*"
        return f"(?P<{hole[0]}>{kind})"

    return re.compile(HOLE.sub(group, sentence))


ABBREVIATIONS = tuple(
    read_abbreviations(Path(__file__).with_name("abbreviations.txt").read_text("utf-8"))
)


def expanded(line: str) -> list[str] | None:
    """The lines that a sentence stands for, indented as they are; most stand for themselves."""
    for abbreviation in ABBREVIATIONS:
        lines = abbreviation.expanded(line)
        if lines is not None:
            return lines
    return None
