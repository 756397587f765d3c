"""Logs as JSON lines on stderr, without client ids, cookies and credentials."""

import logging
import sys
from datetime import UTC, datetime
from typing import Any

import orjson


class JsonLines(logging.Formatter):
    """One object per line; orjson escapes line breaks, so that no message can forge a line."""

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
    """Replace lone surrogates, which stand for bytes that are not UTF-8 and cannot be encoded."""
    return text.encode("utf-8", "backslashreplace").decode()


def configure(level: str) -> None:
    """Set up logging for this process."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
