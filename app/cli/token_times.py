"""When a token ends, as far as the token itself says."""

import base64
from datetime import datetime
from pathlib import Path

import orjson


def end_of(token: str) -> float | None:
    """Return when a token of JWT's form ends, in seconds since 1970; None if it does not say."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        text = base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4))
        end = orjson.loads(text)["exp"]
    except (ValueError, LookupError, TypeError):
        return None
    return float(end) if isinstance(end, int | float) else None


def expired(file: Path, now: float) -> str | None:
    """Return what to say of a file whose token has ended."""
    try:
        end = end_of(file.read_text("ascii").strip())
    except (OSError, UnicodeDecodeError):
        return None
    if end is None or end > now:
        return None
    when = datetime.fromtimestamp(end).astimezone().isoformat(sep=" ", timespec="seconds")
    return f"the token in {file} ended at {when}: get a new one"
