"""From the text of a chapter to its stories."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import takewhile
from pathlib import Path

from tests.conversations.runner.abbreviations import expanded
from tests.conversations.runner.matching import spoken
from tests.conversations.runner.notation import (
    JSON,
    NO_FIELDS,
    NotationError,
    Value,
    is_unfinished,
    parse_fields,
    parse_value,
)
from tests.conversations.runner.stories import (
    TRANSPORTS,
    Act,
    Body,
    Hear,
    Message,
    On,
    Pass,
    RequestLine,
    Say,
    Step,
    Stop,
    Story,
)

SPEECH = re.compile(r"(?P<who>[a-z]+) (?P<arrow>->|~>|<-|<~)(?: (?P<rest>.*))?")
REQUEST = re.compile(r"(?P<method>[A-Z]+) (?P<target>/\S*)(?: (?P<rest>.*))?")
OUTCOME = re.compile(
    r"(?P<outcome>frame|(?:refused |closed )?\d{3,4})(?! times)(?:$| (?P<rest>.*))"
)
HEADER = re.compile(r"(?P<name>[A-Z][A-Za-z]*(?:-[A-Za-z]+)*): ?(?P<value>.*)")
BODY = re.compile(r"body(?: in (?P<encoding>[\w-]+))?:(?: (?P<text>.*))?")
REPEATED = re.compile(r"(?P<count>\d+) times (?P<message>.*)", re.DOTALL)
MESSAGE = re.compile(
    r"""(?P<channel>/\S*)
    (?:\ (?:(?P<ok>ok)|error\ (?P<error>"[^"]*"|<[^>]*>)))?
    (?:\s+(?P<fields>\{.*))?""",
    re.DOTALL | re.VERBOSE,
)
PAUSE = re.compile(r"(?P<ms>\d+) ms pass")
ACTS = re.compile(
    r"(?P<who>[a-z]+) (?P<verb>is held|hears nothing|drops|closes|stops reading|reads again"
    r"|forgets the cookies|shares the cookies of|speaks)(?: (?P<what>.+))?"
)
ON = re.compile(r"on (?P<transports>.+):")
SETTING = re.compile(r"! (?P<name>\w+) = (?P<value>.+)")


@dataclass(frozen=True, slots=True)
class StoryLine:
    """One line of a chapter with the lines that are indented below it."""

    number: int
    text: str
    below: tuple["StoryLine", ...] = ()


@dataclass(slots=True)
class Draft:
    """A story whose head is being read; the lines before the first title are the default."""

    line: int = 0
    title: str = ""
    transports: tuple[str, ...] = ()
    settings: dict[str, JSON] = field(default_factory=dict)
    pins: frozenset[str] = frozenset()
    steps: list[Step] = field(default_factory=list)


@cache
def read_chapter(path: Path) -> list[Story]:
    return read_stories(path.read_text("utf-8"), path)


def read_stories(text: str, path: Path = Path("a chapter")) -> list[Story]:
    defaults = Draft()
    drafts = [defaults]
    for line in nested(numbered(text)):
        try:
            if line.text.startswith("# "):
                drafts.append(
                    replace(
                        defaults,
                        line=line.number,
                        title=line.text[2:],
                        settings=dict(defaults.settings),
                        steps=[],
                    )
                )
            else:
                read_line(line, drafts[-1])
        except NotationError as error:
            raise NotationError(f"{path.name}:{line.number}: {error}") from None
    if defaults.steps:
        raise NotationError(f"{path.name}: a step before the first title")
    return [finished(draft, path) for draft in drafts[1:]]


def finished(draft: Draft, path: Path) -> Story:
    if not draft.transports or not draft.steps:
        raise NotationError(f"{path.name}:{draft.line}: no transports, or nothing happens")
    return Story(
        path,
        draft.line,
        draft.title,
        draft.transports,
        draft.settings,
        draft.pins,
        tuple(draft.steps),
    )


def numbered(text: str) -> Iterator[tuple[int, str]]:
    """The lines with their numbers, without comments and empty ones."""
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip() and not line.lstrip().startswith("-- "):
            yield number, line.rstrip()


def nested(lines: Iterable[tuple[int, str]]) -> list[StoryLine]:
    """Lines with more indentation belong to the line above."""
    found: list[StoryLine] = []
    rest = list(lines)
    while rest:
        (number, text), *rest = rest
        depth = indentation(text)
        below = list(takewhile(partial(is_deeper, depth), rest))
        del rest[: len(below)]
        found.append(StoryLine(number, text.strip(), tuple(nested(below))))
    return found


def is_deeper(depth: int, line: tuple[int, str]) -> bool:
    return indentation(line[1]) > depth


def indentation(text: str) -> int:
    return len(text) - len(text.lstrip())


def read_line(line: StoryLine, draft: Draft) -> None:
    if setting := SETTING.fullmatch(line.text):
        draft.settings[setting["name"]] = spoken(parse_value(setting["value"]), {})
    elif line.text.startswith("transports: "):
        draft.transports = transports_named(line.text.removeprefix("transports: "))
    elif line.text.startswith("pins: "):
        draft.pins = frozenset(re.split(r",\s*", line.text.removeprefix("pins: ")))
    else:
        draft.steps.extend(read_steps(line))


def transports_named(text: str) -> tuple[str, ...]:
    names = tuple(text.split(", "))
    unknown = set(names) - set(TRANSPORTS)
    if unknown:
        raise NotationError(f"unknown transport {', '.join(sorted(unknown))}")
    return names


def read_steps(line: StoryLine) -> Iterator[Step]:
    if on := ON.fullmatch(line.text):
        inner = [step for below in line.below for step in read_steps(below)]
        yield On(line.number, line.text, transports_named(on["transports"]), tuple(inner))
        return
    lines = expanded(line.text)
    if lines is None:
        yield read_step(line)
    elif line.below:
        raise NotationError(f"nothing can be indented below {line.text!r}")
    else:
        yield from map(read_step, nested((line.number, text) for text in lines))


def read_step(line: StoryLine) -> Step:
    number, text = line.number, line.text
    if speech := SPEECH.fullmatch(text):
        return read_speech(line, speech)
    if line.below:
        raise NotationError(f"nothing can be indented below {text!r}")
    if text == "the server stops":
        return Stop(number, text)
    if pause := PAUSE.fullmatch(text):
        return Pass(number, text, int(pause["ms"]))
    if act := ACTS.fullmatch(text):
        return Act(number, text, act["who"], act["verb"], act["what"] or "")
    raise NotationError(f"cannot read {text!r}")


def read_speech(line: StoryLine, speech: re.Match[str]) -> Say | Hear:
    who, arrow, rest = speech["who"], speech["arrow"], speech["rest"] or ""
    is_held = "~" in arrow
    if arrow in ("->", "~>"):
        request = None
        if found := REQUEST.fullmatch(rest):
            request = RequestLine(found["method"], found["target"])
            rest = found["rest"] or ""
        headers, content = read_content(rest, line.below)
        return Say(line.number, line.text, who, is_held, request, headers, content)
    outcome = ""
    if found := OUTCOME.fullmatch(rest):
        outcome, rest = found["outcome"], found["rest"] or ""
    headers, content = read_content(rest, line.below)
    return Hear(line.number, line.text, who, is_held, outcome, headers, content)


def read_content(
    first: str, below: Sequence[StoryLine]
) -> tuple[tuple[tuple[str, str], ...], tuple[Message, ...] | Body]:
    """Headers, then either messages or a body, one a line."""
    headers: list[tuple[str, str]] = []
    messages: list[Message] = []
    body: Body | None = None
    for text in joined([first] * bool(first) + list(texts_of(below))):
        if header := HEADER.fullmatch(text):
            headers.append((header["name"], header["value"]))
        elif found := BODY.fullmatch(text):
            body = Body(found["text"] or "", found["encoding"] or "utf-8")
        else:
            messages += read_messages(text)
    if body is not None and messages:
        raise NotationError("messages or a body, not both")
    return tuple(headers), tuple(messages) if body is None else body


def texts_of(lines: Sequence[StoryLine]) -> Iterator[str]:
    for line in lines:
        yield line.text
        yield from texts_of(line.below)


def joined(texts: Sequence[str]) -> Iterator[str]:
    """Lines joined while the brackets of a message are open."""
    pending = ""
    for text in texts:
        pending = f"{pending} {text}".strip()
        if pending.startswith("body") or not is_unfinished(pending):
            yield pending
            pending = ""
    if pending:
        raise NotationError(f"brackets stay open in {pending}")


def read_messages(text: str) -> list[Message]:
    repeated = REPEATED.fullmatch(text)
    if repeated is None:
        return [read_message(text)]
    return [read_message(repeated["message"])] * int(repeated["count"])


def read_message(text: str) -> Message:
    if text.startswith("{"):
        return Message(parse_fields(text))
    found = MESSAGE.fullmatch(text)
    if found is None:
        raise NotationError(f"this is no message: {text}")
    fields = parse_fields(found["fields"]) if found["fields"] else NO_FIELDS
    error: Value = parse_value(found["error"]) if found["error"] else None
    verdict = True if found["ok"] else False if found["error"] else None
    return Message(fields, found["channel"], verdict, error)
