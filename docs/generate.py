"""Generates the tables of the documentation from the code.

`python -m docs.generate` rewrites them in place, and those of the console; a test fails if they are
out of date. A table is between the comments `<!-- made by docs.generate: NAME -->` and
`<!-- end -->`.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, starmap
from pathlib import Path
from unittest.mock import Mock

import orjson
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from docs import listing, reference_pages
from holdfast.bayeux.assembly import assemble
from holdfast.bayeux.leaving.table import TABLE
from holdfast.bayeux.server import Bayeux
from holdfast.bayeux.state.backend_figures import BackendFigures
from holdfast.bayeux.wire.client_ids import ClientIds
from holdfast.bayeux.wire.errors import ErrorReply
from holdfast.delivery.basics.error_codes import CODES
from holdfast.delivery.basics.node import Node
from holdfast.delivery.basics.steps import STEPS
from holdfast.delivery.messages.letter_quota import LetterQuota
from holdfast.delivery.ports.other_shards import LogFigures
from holdfast.delivery.ports.store_port import StorePort
from holdfast.journal.writer import JournalWriter
from holdfast.settings import OFTEN_SET, SECTIONS, SET_OFTEN, ChannelSettings, Settings
from holdfast.settings.login import BackendSettings
from holdfast.settings.webhooks import WebhookSettings
from holdfast.units import unit_of
from holdfast.web.admin.alert_limits import AlertLimits
from holdfast.web.admin.alerts import Alerts
from holdfast.web.admin.listed import LISTED
from holdfast.web.front.connection_limit import ConnectionLimit
from holdfast.web.prometheus.backend_families import backend_families
from holdfast.web.prometheus.door_figures import DoorFigures
from holdfast.web.prometheus.metric_families import BayeuxCollector
from holdfast.web.prometheus.shard_families import (
    answering,
    door_families_of,
    families_of,
    restarted,
)
from holdfast.web.scheduling.speaking import OwnStoreRight

DOCS = Path(__file__).parent
CONSOLE = DOCS.parent / "static/console"
EXPLAINED = DOCS.parent / "app/bayeux/wire/errors.toml"


def settings() -> str:
    """The table of settings, by sections."""
    return "".join(
        f"\n## {section.heading}\n\n" + _table(("Setting", "Default", "Meaning"), _rows(section))
        for section in SECTIONS
    )


def channels() -> str:
    """The table of the settings of channels."""
    return _table(("Key", "Default", "Meaning"), _rows(ChannelSettings))


def webhooks() -> str:
    """The table of the settings of a webhook."""
    return _table(("Key", "Default", "Meaning"), _rows(WebhookSettings))


def backend() -> str:
    """The table of the settings of the backend."""
    return _table(("Key", "Default", "Meaning"), _rows(BackendSettings))


def often_set() -> str:
    """The settings that people set."""
    fields = Settings.model_fields
    rows = (_setting(name, fields[name]) for name in OFTEN_SET)
    return f"\n## {SET_OFTEN}\n\n" + _table(("Setting", "Default", "Meaning"), rows)


def alerts() -> str:
    """The table of alerts: the keys of their file."""
    return _table(("Key", "Default", "Meaning"), _rows(AlertLimits))


def _rows(section: type[BaseModel]) -> Iterator[str]:
    return (_setting(name, field) for name, field in section.model_fields.items())


def _setting(name: str, field: FieldInfo) -> str:
    return _row(f"`{name}`", _default(field), field.description or "")


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "must be set"
    value = field.get_default()
    if value is None:
        return "none"
    shown = orjson.dumps(value, default=str).decode()
    unit = unit_of(field.metadata)
    readable = unit and unit.readable(value)
    return f"`{shown}` ({readable})" if readable else f"`{shown}`"


def explanations() -> dict[str, dict[str, str]]:
    """What each error of replies means, why it happens, and what to do about it."""
    return tomllib.loads(EXPLAINED.read_text("utf-8"))


def errors() -> str:
    """The errors in replies, by code, each with a heading to link to."""
    texts = explanations()
    parts = [
        f"### {error.code} {error.reason}\n\n"
        f"{_sentence(text['means'])}\n\n"
        f"*Why:* {text['why']}\n\n*What to do:* {text['do']}\n"
        for error in sorted(ErrorReply, key=lambda error: error.code)
        for text in [texts[error.reason]]
    ]
    return "\n" + "\n".join(parts) + "\n"


def _sentence(text: str) -> str:
    return text if text.endswith(".") else f"{text}."


def error_codes() -> str:
    """The table of error codes of failed deliveries and refused requests."""
    rows = [_row(f"`{code.text}`", code.meaning) for code in CODES.values()]
    return _table(("Code", "Meaning"), rows)


def metrics() -> str:
    """The table of the server's metrics; prometheus-client adds those of the process."""
    rows = []
    alone = BayeuxCollector(_silent_server(), _limits(), Alerts(), OwnStoreRight())
    one, other = {1: 0}, {1: 0.0}
    crossing = families_of(LogFigures(0, 0, 0, one, one, one, other))
    joint = [
        *door_families_of(DoorFigures(one, one, "a.example")),
        answering({1: True}),
        restarted(one),
    ]
    backend = backend_families(BackendFigures(""))
    for metric in chain(alone.collect(), backend, crossing, joint):
        suffix = "_total" if metric.type == "counter" else ""
        labels: dict[str, dict[str, None]] = {}
        for sample in metric.samples:
            for name, value in sample.labels.items():
                labels.setdefault(name, {})[value] = None
        # The bounds of buckets are in the text above the table.
        labels.pop("le", None)
        if metric.name == "holdfast_build_info":
            labels = _labels_of_build()
        shown = ", ".join(f"`{name}`: {', '.join(values)}" for name, values in labels.items())
        rows.append(_row(f"`{metric.name}{suffix}`", metric.documentation, shown))
    return _table(("Metric", "Meaning", "Labels"), rows)


def _labels_of_build() -> dict[str, dict[str, None]]:
    """Return what the sources say: whatever is installed here may be older."""
    project = tomllib.loads((DOCS.parent / "pyproject.toml").read_text("utf-8"))["project"]
    oldest = project["requires-python"].removeprefix(">=")
    return {
        "version": {project["version"]: None},
        "python": {f"{oldest} or newer": None},
        "core": dict.fromkeys(("compiled", "interpreted")),
    }


def requests() -> str:
    """The table of requests to the administration."""
    return _table(("Request", "What it does", "Takes"), starmap(_row, listing.requests()))


def commands() -> str:
    """The table of commands, with their options."""
    return _table(("Command", "What it does", "Options"), starmap(_row, listing.commands()))


def steps() -> str:
    return _table(
        ("Kind", "What happened"), (_row(f"`{step.kind}`", step.meaning) for step in STEPS)
    )


def leaving() -> str:
    rows = (_row(row.what, row.fate.value, row.why) for row in TABLE)
    return _table(("In memory", "What becomes of it", "How, and why it is harmless"), rows)


def console_steps() -> str:
    rows = [
        (
            step.kind,
            {
                "words": step.words,
                "mood": step.mood.value,
                "rank": len(STEPS) if step.is_end else rank,
                "stage": step.stage,
            },
        )
        for rank, step in enumerate(STEPS)
    ]
    return _script("STEPS", rows, "new Map([%s])")


def console_lists() -> str:
    rows = [
        {
            "name": each.name,
            "title": each.title,
            "things": each.things,
            "explanation": each.explanation,
            "columns": [{"name": name, "form": form} for name, form in each.columns.items()],
        }
        for each in LISTED
    ]
    return _script("LISTED", rows)


def _script(name: str, rows: Iterable[object], form: str = "[%s]") -> str:
    """Return a constant in JavaScript, up to the beginning of the next comment."""
    lines = "".join(f"    {orjson.dumps(row).decode()},\n" for row in rows)
    value = form % f"\n{lines}"
    return f"export const {name} = {value};\n// "


def _limits() -> dict[str, ConnectionLimit]:
    return {"main": ConnectionLimit(1), "admin": ConnectionLimit(1)}


def _silent_server() -> Bayeux:
    return assemble(
        Settings(),
        node=Node("docs", int, "docs"),
        store=Mock(spec=StorePort, letter_quota=LetterQuota()),
        epoch="",
        journal=JournalWriter("docs", Mock(), now=0.0, now_ns=int),
        client_ids=ClientIds(b"", bytes),
        random=float,
        on_ready=lambda: None,
        run_later=lambda work, done: None,
        is_turn_over=lambda: False,
        unread_since=float,
        role_of=str,
    )


def _table(titles: Sequence[str], rows: Iterable[str]) -> str:
    return "\n".join([*_head(*titles), *rows]) + "\n"


def _head(*titles: str) -> list[str]:
    return [_row(*titles), _row(*["---"] * len(titles))]


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


TABLES = {
    "settings that people set": (DOCS / "reference" / "settings.md", often_set),
    "settings": (DOCS / "reference" / "settings.md", settings),
    "channels": (DOCS / "reference" / "settings.md", channels),
    "webhooks": (DOCS / "how-to" / "webhooks.md", webhooks),
    "backend": (DOCS / "how-to" / "backend.md", backend),
    "errors": (DOCS / "reference" / "error-codes.md", errors),
    "error codes": (DOCS / "reference" / "error-codes.md", error_codes),
    "metrics": (DOCS / "reference" / "metrics.md", metrics),
    "alerts": (DOCS / "how-to" / "monitoring.md", alerts),
    "steps": (DOCS / "reference" / "tables.md", steps),
    "requests": (DOCS / "reference" / "administration.md", requests),
    "commands": (DOCS / "reference" / "command-line.md", commands),
    "leaving": (DOCS / "building" / "succession.md", leaving),
    "options": (DOCS / "reference" / "commands.md", reference_pages.commands),
    "python": (DOCS / "reference" / "python.md", reference_pages.python),
    "javascript": (DOCS / "reference" / "javascript.md", reference_pages.javascript),
    "console steps": (CONSOLE / "steps.js", console_steps),
    "console lists": (CONSOLE / "listed.js", console_lists),
}


def renewed(name: str) -> tuple[Path, str]:
    """Return a page and its text with the table generated anew."""
    page, make = TABLES[name]
    return page, replaced(page.read_text("utf-8"), f"docs.generate: {name}", make())


def replaced(text: str, maker: str, made: str) -> str:
    """Return the text with new content between the two comments of this maker."""
    marked = re.compile(rf"(<!-- made by {re.escape(maker)} -->\n).*?(<!-- end -->)", re.DOTALL)
    text, count = marked.subn(lambda found: found[1] + made + found[2], text)
    if count != 1:
        raise ValueError(f"there must be exactly one place made by {maker}")
    return text


def main() -> None:
    for name in TABLES:
        page, text = renewed(name)
        page.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
