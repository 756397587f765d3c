"""Logs as JSON lines on stderr. Client ids, cookies and credentials never get here."""

import logging
import sys
from datetime import UTC, datetime
from typing import Any

import orjson


class JsonLines(logging.Formatter):
    """One object per line; orjson escapes what could forge another line."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": _text(record.getMessage()),
        }
        if record.exc_info:
            line["exception"] = _text(self.formatException(record.exc_info))
        return orjson.dumps(line, default=str).decode()


def _text(text: str) -> str:
    """Bytes that were no UTF-8 come as lone surrogates, which no output takes."""
    return text.encode("utf-8", "backslashreplace").decode()


def configure(level: str) -> None:
    """Set logging up for this process."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
