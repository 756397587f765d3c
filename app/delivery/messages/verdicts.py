"""Verdicts: a receiver's answers to messages, each OK or a refusal with an error code.

`Settlement` settles confirmed entries; `reactions` decides what a refusal means.
"""

import re
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from holdfast.delivery.basics.error_codes import INTERNAL_ERROR, ErrorCode, of_receiver
from holdfast.delivery.basics.json_text import to_json, whole

# The longest text that a receiver may send, in characters ...
_LONGEST_TEXT: Final = 1000
# ... and the longest pause that it may ask for.
_LONGEST_DELAY_MS: Final = 24 * 3_600_000
_MEMBERS: Final = frozenset(["seq", "state", "errorCode", "message", "delay"])
# Error texts quote names of options and members only if they match this.
QUOTABLE: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")


class Verdict(NamedTuple):
    """A verdict. Unless it is OK, it has a code that the server can act on."""

    seq: int
    ok: bool
    code: ErrorCode | None = None
    text: str = ""
    delay_s: float | None = None


class ClientVerdicts(NamedTuple):
    """Everything that one message of a client says about deliveries."""

    verdicts: Sequence[Verdict] = ()
    # The numbers of the entries that it is still processing.
    pending: frozenset[int] = frozenset()


SILENT: Final = ClientVerdicts()


class Refusals:
    """The refusals in one message of a client, in order. Thousands take several turns."""

    def __init__(self, refusals: Iterable[Verdict]) -> None:
        # Verdicts that are not carried out yet.
        self.rest = deque(refusals)
        # Whether any entry was refused. If so, the reply must wait for the store: a receiver never
        # repeats a refusal that was answered, so after a crash its next ack would settle the
        # message.
        self.refused_any = False


class Unreadable(Exception):
    """A verdict is unreadable. The text is the path of the unreadable part."""


def read_client_verdicts(given: Mapping[str, object], most: int) -> ClientVerdicts:
    """Read at most `most` verdicts, and the pending numbers. Raises `Unreadable`."""
    verdicts = read_verdicts(given["verdicts"], most) if "verdicts" in given else ()
    pending = _read_pending(given["pending"]) if "pending" in given else SILENT.pending
    return ClientVerdicts(verdicts, pending)


def read_verdicts(given: object, most: int) -> Sequence[Verdict]:
    """Read a list of up to `most` verdicts. Raises `Unreadable`."""
    if type(given) is not list or len(given) > most:
        raise Unreadable("verdicts")
    verdicts = []
    for place, element in enumerate(given):
        seq = element.get("seq") if type(element) is dict and len(element) == 2 else None
        if type(seq) is int and element.get("state") == "OK":
            # The usual case.
            verdicts.append(Verdict(seq, True))
        else:
            verdicts.append(_read(element, place))
    return verdicts


def _read_pending(given: object) -> frozenset[int]:
    if type(given) is not list:
        raise Unreadable("pending")
    seqs = [whole(seq) for seq in given]
    if None in seqs:
        raise Unreadable(f"pending[{seqs.index(None)}]")
    return frozenset([seq for seq in seqs if seq is not None])


def _read(element: object, place: int) -> Verdict:
    if type(element) is not dict:
        raise Unreadable(f"verdicts[{place}]")
    seq = whole(element.get("seq"))
    if seq is None:
        raise Unreadable(f"verdicts[{place}].seq")
    code = element.get("errorCode")
    wrong = _wrong_member(element)
    if wrong is not None:
        raise Unreadable(f"verdicts[{place}]{wrong}")
    if code is None and element.get("state") == "OK":
        return Verdict(seq, ok=True)
    return _refusal(seq, code, element.get("message") or "", element.get("delay"))


def _refusal(seq: int, given: object, text: str, delay: object) -> Verdict:
    code = of_receiver(given) if type(given) is str else None
    if code is None:
        code = INTERNAL_ERROR
        text = ": ".join(filter(None, (_quoted(given), text)))
    delay_s = _delay_s(delay) if code.family == "communication" else None
    return Verdict(seq, False, code, text[:_LONGEST_TEXT], delay_s)


def _quoted(given: object) -> str:
    """Return a code as it was sent, quoted, whatever its type."""
    if given is None:
        return ""
    return given if type(given) is str else to_json(given).decode()


def _wrong_member(element: dict[str, object]) -> str | None:
    """Return an unknown member. Ignoring it could turn a refusal into an OK."""
    for name, value in element.items():
        if name not in _MEMBERS:
            return f".{name}" if QUOTABLE.fullmatch(name) else ""
        if name == "message" and value is not None and type(value) is not str:
            return ".message"
        if name == "delay" and value is not None and _delay_s(value) is None:
            return ".delay"
    return None


def _delay_s(delay: object) -> float | None:
    if isinstance(delay, bool) or not isinstance(delay, int | float) or not delay >= 0:
        return None
    return min(delay, _LONGEST_DELAY_MS) / 1000
