"""What `docs.generate` makes of commands and of interfaces for programs."""

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

import holdfast
from holdfast import client, interface
from holdfast.cli.main import COMMANDS, GROUPS, load
from holdfast.cli.program import help_record

MODULES = Path(__file__).parents[1] / "static/js"
_ARGS = re.compile(r"\n(Args|Returns|Raises|Yields|Example):\n")


def commands() -> str:
    """Every command with its options."""
    return "\n" + "".join(_commands())


def _commands() -> Iterator[str]:
    for group, names in GROUPS.items():
        yield f"## {group}\n\n"
        for name in names:
            yield from _commands_of(f"holdfast {name}", load(name), COMMANDS[name])


def _commands_of(words: str, command: Any, purpose: str) -> Iterator[str]:  # noqa: ANN401 - as below
    parts: dict[str, Any] = getattr(command, "commands", {})
    if not parts:
        yield _command(words, command, purpose)
    for part, found in parts.items():
        yield from _commands_of(f"{words} {part}", found, "")


def _command(words: str, command: Any, purpose: str) -> str:  # noqa: ANN401 - typer has click inside
    context = typer.Context(command, info_name=words)
    usage = " ".join([words, *command.collect_usage_pieces(context)])
    told = (command.help or purpose).split("\n\n")
    texts = [_prose(each) for each in told if not each.strip().startswith("Example: ")]
    examples = [each.strip().removeprefix("Example: ") for each in told if "Example: " in each]
    records = [help_record(each, context) for each in command.params]
    rows = [f"| `{_cell(term)}` | {_cell(text)} |\n" for term, text in filter(None, records)]
    # The settings of a server have a page, which is longer.
    if words == "holdfast serve":
        rows = ["\nIts options are the [settings](settings.md).\n"]
    elif rows:
        rows.insert(0, "| Option | Meaning |\n| --- | --- |\n")
    code = "".join(f"```sh\n{' '.join(each.split())}\n```\n\n" for each in [usage, *examples])
    return f"### {words}\n\n" + "\n\n".join(texts) + f"\n\n{code}{''.join(rows)}\n"


def python() -> str:
    """The public names of the package, with their docstrings."""
    parts = ["\n## The client\n\n"]
    parts += [_class(getattr(holdfast, name)) for name in client.__all__]
    parts.append("## Extensions of the server\n\n")
    parts += [_class(getattr(holdfast, name)) for name in interface.__all__]
    return "".join(parts)


def _class(thing: Any) -> str:  # noqa: ANN401 - any public name
    if not inspect.isclass(thing):
        return ""
    parts = [f"### {thing.__name__}\n\n", _docstring(thing)]
    for name, member in vars(thing).items():
        if name.startswith("_") or not (inspect.isfunction(member) or isinstance(member, property)):
            continue
        told = inspect.getdoc(member)
        if told:
            shown = name if isinstance(member, property) else f"{name}{_signature(member)}"
            prefix = "await " if inspect.iscoroutinefunction(member) else ""
            parts.append(f"* `{prefix}{shown}`: {_prose(_ARGS.split(told)[0])}\n")
    return "".join(parts) + "\n"


def _signature(member: Any) -> str:  # noqa: ANN401 - a function
    given = list(inspect.signature(member).parameters.values())[1:]
    names, is_keyword = [], False
    for each in given:
        if each.kind is each.KEYWORD_ONLY and not is_keyword:
            is_keyword = True
            names.append("*")
        star = "*" if each.kind is each.VAR_POSITIONAL else ""
        names.append(star + each.name + ("=…" if each.default is not each.empty else ""))
    return f"({', '.join(names)})"


def _docstring(thing: Any) -> str:  # noqa: ANN401 - any public name
    told = inspect.getdoc(thing) or ""
    if told.startswith(f"{thing.__name__}("):
        # Of a dataclass that says nothing but its fields.
        return f"`{_prose(told)}`\n\n"
    text, *sections = _ARGS.split(told)
    rows = "".join(f"* {_item(each)}\n" for each in _items(sections))
    return (
        "\n\n".join(_prose(each) for each in text.split("\n\n")) + "\n\n" + (rows and f"{rows}\n")
    )


def _items(sections: list[str]) -> Iterator[str]:
    """Yield the arguments that a docstring explains."""
    for title, body in zip(sections[::2], sections[1::2], strict=True):
        if title == "Args":
            yield from re.split(r"\n(?= {4}\w)", body)


def _item(text: str) -> str:
    name, _, meaning = _prose(text).partition(": ")
    return f"`{name}`: {meaning}"


def javascript() -> str:
    """The declarations of the modules that pages import."""
    parts = ["\n"]
    for path in sorted(MODULES.glob("*.d.ts")):
        text = path.read_text("utf-8").strip()
        parts.append(f"## {path.name.removesuffix('.d.ts')}.js\n\n```ts\n{text}\n```\n\n")
    return "".join(parts)


def _prose(text: str) -> str:
    """Return text in one line, in which nothing counts as HTML."""
    return re.sub(r"(`[^`]*`)|<", lambda found: found[1] or "&lt;", " ".join(text.split()))


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
