"""Logs as JSON lines on stderr. Client ids, cookies and credentials never get here."""

import logging
import sys
from datetime import UTC, datetime
from typing import Any

import orjson

# Loggers whose lines clients can cause as often as they like.
_CAUSED_BY_CLIENTS = ("app.web.websocket",)


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


class AtMost(logging.Filter):
    """Lets so many lines pass in a minute; the next one says how many more there were."""

    def __init__(self, most: int = 60) -> None:
        super().__init__()
        self._most = most
        self._minute = 0
        self._count = 0

    def filter(self, record: logging.LogRecord) -> bool:
        minute = int(record.created // 60)
        if minute != self._minute:
            if (more := self._count - self._most) > 0:
                record.msg = f"{record.msg} ({more} such lines were left out before)"
            self._minute, self._count = minute, 0
        self._count += 1
        return self._count <= self._most


def _text(text: str) -> str:
    """Bytes that were no UTF-8 come as lone surrogates, which no output takes."""
    return text.encode("utf-8", "backslashreplace").decode()


def configure(level: str) -> None:
    """Set logging up for this process."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    for name in _CAUSED_BY_CLIENTS:
        logging.getLogger(name).addFilter(AtMost())
