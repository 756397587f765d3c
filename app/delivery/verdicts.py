"""What a receiver says of one message that it was handed: ok, or an error code."""

from typing import NamedTuple

from app.delivery.error_codes import INTERNAL_ERROR, ErrorCode, find

# A receiver may explain itself at this length (characters) ...
_LONGEST_TEXT = 1000
# ... and ask for a pause of at most this.
_LONGEST_DELAY_MS = 24 * 3_600_000


class Verdict(NamedTuple):
    """A verdict; one that is not ok always has a code that the server can act upon."""

    seq: int
    ok: bool
    code: ErrorCode | None = None
    text: str = ""
    delay_s: float | None = None


def parse(element: object) -> Verdict | None:
    """One element of what a client sent, None if it does not say what it speaks of."""
    if not isinstance(element, dict):
        return None
    seq = element.get("seq")
    if type(seq) is not int:
        return None
    said = element.get("errorCode")
    if said is None and element.get("state") == "OK":
        return Verdict(seq, ok=True)
    code = find(said) if isinstance(said, str) else None
    acted = normalise(code)
    text = element.get("message")
    words = [text] if isinstance(text, str) and text else []
    if acted is not code and isinstance(said, str) and said:
        words.insert(0, said)
    delay_s = _delay_s(element.get("delay")) if acted.family == "communication" else None
    return Verdict(
        seq, ok=False, code=acted, text=": ".join(words)[:_LONGEST_TEXT], delay_s=delay_s
    )


def normalise(code: ErrorCode | None) -> ErrorCode:
    """What the server acts upon: receivers speak of themselves and of the connection only."""
    if code is not None and code.family in ("user", "communication"):
        return code
    return INTERNAL_ERROR


def _delay_s(delay: object) -> float | None:
    if isinstance(delay, bool) or not isinstance(delay, int | float) or not delay >= 0:
        return None
    return min(delay, _LONGEST_DELAY_MS) / 1000
