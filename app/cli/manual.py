"""Makes man pages of all commands: `python -m holdfast.cli.manual VERSION FOLDER` writes them.

The build does, for wheels to bring them along.
"""

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import typer

from holdfast.cli.failures import MEANINGS
from holdfast.cli.main import COMMANDS, GROUPS, load
from holdfast.cli.program import help_record

_ENVIRONMENT = (
    ("HOLDFAST_URL", "The server's URL, like --url."),
    ("HOLDFAST_CLIENT_URL", "Its URL for publish, subscribe and other clients, if that differs."),
    ("HOLDFAST_TOKEN_FILE", "The file of the administration's token."),
    ("HOLDFAST_DATA", "The server's data directory, which has that file."),
    ("HOLDFAST_PASSWORD", "The password of --user."),
    ("NO_COLOR", "Print without colours."),
)
_EXAMPLE = "Example: "


def pages(version: str) -> Iterator[tuple[str, str]]:
    """Return the name and the text of each page."""
    yield "holdfast", "".join(_overview(version))
    for name in COMMANDS:
        yield f"holdfast-{name}", "".join(_page(name, version))


def _overview(version: str) -> Iterator[str]:
    purpose = "reliable messaging for browsers and scripts: a Bayeux/CometD server"
    yield _head("holdfast", purpose, version)
    yield _heading("SYNOPSIS") + _lines("holdfast COMMAND [OPTIONS] …", "holdfast COMMAND --help")
    for group, commands in GROUPS.items():
        yield _heading(f"COMMANDS: {group.upper()}")
        yield _terms([(f"holdfast-{name}(1)", text) for name, text in commands.items()])
    yield _heading("ENVIRONMENT") + _terms(_ENVIRONMENT)
    yield _exit_codes()


def _page(name: str, version: str) -> Iterator[str]:
    command: Any = load(name)
    title, words = f"holdfast-{name}", f"holdfast {name}"
    purpose = COMMANDS[name].rstrip(".")
    yield _head(title, purpose[:1].lower() + purpose[1:], version)
    parts: dict[str, Any] = getattr(command, "commands", {})
    if parts:
        yield _heading("SYNOPSIS")
        yield _lines(*(_usage(f"{words} {part}", parts[part]) for part in parts))
        yield _heading("COMMANDS")
        for part, found in parts.items():
            yield f".SS {_text(f'{words} {part}')}\n"
            yield _description(found) + _options(f"{words} {part}", found)
    else:
        yield _heading("SYNOPSIS") + _lines(_usage(words, command))
        yield _heading("DESCRIPTION") + _description(command)
        yield _heading("OPTIONS") + _options(words, command)
    yield _exit_codes()
    yield _heading("SEE ALSO") + "holdfast(1)\n"


def _head(title: str, purpose: str, version: str) -> str:
    # Without a date: the same sources make the same pages.
    head = f'.TH "{_text(title.upper())}" 1 "" "holdfast {version}"\n'
    return head + f".SH NAME\n{_text(title)} \\- {_text(purpose)}\n"


def _heading(text: str) -> str:
    return f".SH {_text(text)}\n"


def _lines(*lines: str) -> str:
    return ".nf\n" + "".join(f"{_text(line)}\n" for line in lines) + ".fi\n"


def _usage(words: str, command: Any) -> str:  # noqa: ANN401 - typer has click inside
    return " ".join([words, *command.collect_usage_pieces(_context(words, command))])


def _description(command: Any) -> str:  # noqa: ANN401 - as above
    """Return the help text; its first paragraph is a sentence, an example stands by itself."""
    texts = []
    for paragraph in (command.help or "").split("\n\n"):
        text = " ".join(paragraph.split())
        is_example = text.startswith(_EXAMPLE)
        texts.append(_lines(text.removeprefix(_EXAMPLE)) if is_example else f"{_text(text)}\n")
    return ".PP\n".join(texts)


def _options(words: str, command: Any) -> str:  # noqa: ANN401 - as above
    context = _context(words, command)
    records = [help_record(each, context) for each in command.params]
    return _terms([record for record in records if record is not None])


def _context(words: str, command: Any) -> typer.Context:  # noqa: ANN401 - as above
    return typer.Context(command, info_name=words)


def _terms(rows: Sequence[tuple[str, str]]) -> str:
    return "".join(f".TP\n\\fB{_text(term)}\\fR\n{_text(text)}\n" for term, text in rows)


def _exit_codes() -> str:
    rows = [(str(exit.value), meaning) for exit, meaning in MEANINGS.items()]
    return _heading("EXIT STATUS") + _terms(rows)


def _text(text: str) -> str:
    """Return text with all escaped that roff would interpret."""
    text = " ".join(text.split()).replace("\\", "\\e").replace("-", "\\-")
    text = re.sub(r"^([.'])", r"\\&\1", text)
    return text.replace("…", "...")


def _write(version: str, folder: str) -> None:
    for name, text in pages(version):
        Path(folder, f"{name}.1").write_text(text, "utf-8")


if __name__ == "__main__":
    _write(*sys.argv[1:])
