"""What a receiver says of one message that it was handed: ok, or an error code."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from app.delivery.error_codes import INTERNAL_ERROR, ErrorCode, find
from app.delivery.numbers import whole

# A receiver may explain itself at this length (characters) ...
_LONGEST_TEXT = 1000
# ... and ask for a pause of at most this.
_LONGEST_DELAY_MS = 24 * 3_600_000
_MEMBERS = frozenset(["seq", "state", "errorCode", "message", "delay"])
# Other names are not repeated in errors.
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")


class Verdict(NamedTuple):
    """A verdict; one that is not ok always has a code that the server can act upon."""

    seq: int
    ok: bool
    code: ErrorCode | None = None
    text: str = ""
    delay_s: float | None = None


class Said(NamedTuple):
    """What one message of a client says of deliveries."""

    verdicts: Sequence[Verdict] = ()
    # What it still works on.
    pending: frozenset[int] = frozenset()


SILENT = Said()


class Unreadable(Exception):
    """What a client said cannot be read; the text is the path of the part that cannot."""


def read_said(said: Mapping[str, object], most: int) -> Said:
    """What `ext.delivery` says of deliveries, with so many verdicts at most.

    Raises `Unreadable`.
    """
    verdicts = read_verdicts(said["verdicts"], most) if "verdicts" in said else ()
    pending = _read_pending(said["pending"]) if "pending" in said else SILENT.pending
    return Said(verdicts, pending)


def read_verdicts(said: object, most: int) -> Sequence[Verdict]:
    """The elements of a list, so many at most. Raises `Unreadable`."""
    if type(said) is not list or len(said) > most:
        raise Unreadable("verdicts")
    verdicts = []
    for place, element in enumerate(said):
        seq = element.get("seq") if type(element) is dict and len(element) == 2 else None
        if type(seq) is int and element.get("state") == "OK":
            # By far the most are like this.
            verdicts.append(Verdict(seq, True))
        else:
            verdicts.append(_read(element, place))
    return verdicts


def _read_pending(said: object) -> frozenset[int]:
    if type(said) is not list:
        raise Unreadable("pending")
    seqs = [whole(seq) for seq in said]
    if None in seqs:
        raise Unreadable(f"pending[{seqs.index(None)}]")
    return frozenset([seq for seq in seqs if seq is not None])


def _read(element: object, place: int) -> Verdict:
    if type(element) is not dict:
        raise Unreadable(f"verdicts[{place}]")
    seq = whole(element.get("seq"))
    if seq is None:
        raise Unreadable(f"verdicts[{place}].seq")
    said = element.get("errorCode")
    wrong = _wrong_member(element)
    if wrong is not None:
        raise Unreadable(f"verdicts[{place}]{wrong}")
    if said is None and element.get("state") == "OK":
        return Verdict(seq, ok=True)
    return _refusal(seq, said, element.get("message") or "", element.get("delay"))


def _refusal(seq: int, said: object, text: str, delay: object) -> Verdict:
    name = said if type(said) is str else ""
    code = find(name)
    acted = normalise(code)
    if acted is not code and name:
        text = f"{name}: {text}" if text else name
    delay_s = _delay_s(delay) if acted.family == "communication" else None
    return Verdict(seq, False, acted, text[:_LONGEST_TEXT], delay_s)


def _wrong_member(element: dict[str, object]) -> str | None:
    """The member that means nothing: who ignores it may take a refusal for consent."""
    for name, value in element.items():
        if name not in _MEMBERS:
            return f".{name}" if _NAME.fullmatch(name) else ""
        if name == "message" and value is not None and type(value) is not str:
            return ".message"
        if name == "delay" and value is not None and _delay_s(value) is None:
            return ".delay"
    return None


def normalise(code: ErrorCode | None) -> ErrorCode:
    """What the server acts upon: receivers speak of themselves and of the connection only."""
    if code is not None and code.family in ("user", "communication"):
        return code
    return INTERNAL_ERROR


def _delay_s(delay: object) -> float | None:
    if isinstance(delay, bool) or not isinstance(delay, int | float) or not delay >= 0:
        return None
    return min(delay, _LONGEST_DELAY_MS) / 1000
