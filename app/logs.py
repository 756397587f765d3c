"""Logs on stderr: lines for people on a terminal, JSON lines elsewhere.

They have no client ids, cookies and credentials.
"""

import logging
import os
import sys
from datetime import UTC, datetime
from typing import Any

import orjson

# On a terminal, the levels that stand out.
_COLOURS = {"warning": "\x1b[33m", "error": "\x1b[31m", "critical": "\x1b[31m"}
_PLAIN = "\x1b[0m"
# What a line about a traced message has besides, by the names of OpenTelemetry.
_OF_TRACE = ("trace_id", "span_id")
_LONGEST_LEVEL = len("critical")


class JsonLines(logging.Formatter):
    """One object per line; orjson escapes line breaks, so that no message can forge a line.

    A line has the name of its host if there are several, and the number of its shard likewise.
    """

    def __init__(self, shard: int | None = None, host: str | None = None) -> None:
        super().__init__()
        whose = {"host": host, "shard": shard}
        self._whose = {name: each for name, each in whose.items() if each is not None}

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            **self._whose,
            "message": _text(record.getMessage()),
        }
        for name in _OF_TRACE:
            if name in record.__dict__:
                line[name] = record.__dict__[name]
        if record.exc_info:
            line["exception"] = _text(self.formatException(record.exc_info))
        return orjson.dumps(line, default=str).decode()


class TextLines(logging.Formatter):
    """Time of day, level and message; a traceback is indented below.

    What a terminal would obey is escaped, so that no message can forge a line.
    """

    def __init__(self, *, has_colours: bool, shard: int | None = None) -> None:
        super().__init__()
        self._shard = "" if shard is None else f"shard={shard} "
        self._colours = _COLOURS if has_colours else {}

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created).astimezone()
        level = record.levelname.lower()
        shown = f"{level:<{_LONGEST_LEVEL}}"
        if level in self._colours:
            shown = f"{self._colours[level]}{shown}{_PLAIN}"
        lines = [f"{moment:%H:%M:%S} {shown} {self._shard}{_visible(record.getMessage())}"]
        if record.exc_info:
            trace = self.formatException(record.exc_info)
            lines += [f"    {_visible(line)}" for line in trace.splitlines()]
        return "\n".join(lines)


def _text(text: str) -> str:
    """Replace lone surrogates, which stand for bytes that are not UTF-8 and cannot be encoded."""
    return text.encode("utf-8", "backslashreplace").decode()


def _visible(text: str) -> str:
    """Escape everything that is invisible, or that a terminal interprets."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def configure(level: str, *, shard: int | None = None, host: str | None = None) -> None:
    """Set up logging for this process: of a shard among others, or on a host among others."""
    handler = logging.StreamHandler(sys.stderr)
    has_colours = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    is_read = sys.stderr.isatty()
    lines = TextLines(has_colours=has_colours, shard=shard) if is_read else JsonLines(shard, host)
    handler.setFormatter(lines)
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
