"""Many attacks at once, each on a connection of its own, and the answer to each."""

import re
import time
from collections.abc import Sequence
from contextlib import ExitStack
from select import select

import orjson

from tests.abuse.attacker import Wire
from tests.abuse.target import Target
from tests.slowness import times_slower

# After so much silence no further answer will come: the request is not complete. The first one may
# take longer, on a machine that does other things, too; then so may the others.
SILENCE_S, FIRST_SILENCE_S = 0.05, 2.0 * times_slower(most=5.0)
STATUS = re.compile(rb"HTTP/1\.[01] (\d{3}) ")
# Statuses of 500 and more that are no faults: not implemented, busy, an unknown version.
ALLOWED = {501, 503, 505}
ERROR = re.compile(r"\d{3}:[^:]*:[a-z_]+")
CLOSE_CODES = {1000, 1001, 1002, 1003, 1007, 1008, 1009, 1011}


class Finding(AssertionError):
    """Something that must not happen, and what was sent before it."""


def fire(target: Target, wires: Sequence[Wire], attacks: Sequence[bytes]) -> list[bytes]:
    """Send each attack on its wire; return what the server has answered to each so far."""
    for wire, attack in zip(wires, attacks, strict=True):
        wire.send_until_refused(attack)
    heard = [b""] * len(wires)
    began, first_s = time.monotonic(), 0.0
    waiting = {wire.socket: at for at, wire in enumerate(wires)}
    while waiting and not all(heard):
        silence_s = SILENCE_S + first_s if any(heard) else FIRST_SILENCE_S
        readable, _, _ = select(list(waiting), [], [], silence_s)
        if not readable:
            break
        first_s = first_s or time.monotonic() - began
        for each in readable:
            at = waiting[each]
            try:
                data = each.recv(65536)
            except ConnectionError:
                data = b""
            heard[at] += data
            if not data:
                del waiting[each]
    check_log(target, attacks)
    return heard


def fire_requests(target: Target, attacks: Sequence[bytes]) -> int:
    """How many of these requests were answered; raises a `Finding`."""
    return sum(map(bool, fire_answers(target, attacks)))


def fire_answers(target: Target, attacks: Sequence[bytes]) -> list[bytes]:
    """The answers to these requests; raises a `Finding`."""
    with ExitStack() as open_ones:
        # The administration takes fewer requests from one address.
        sources = [f"127.0.0.{at + 2}" for at in range(len(attacks))]
        wires = [open_ones.enter_context(target.wire(source=source)) for source in sources]
        heard = fire(target, wires, attacks)
    for attack, answer in zip(attacks, heard, strict=True):
        check_answer(attack, answer)
    return heard


def check_log(target: Target, attacks: Sequence[bytes]) -> None:
    if "Traceback" in (log := target.log()):
        sent = "\n".join(map(repr, attacks))
        raise Finding(f"{log[log.index('Traceback') - 500 :][:4000]}\nafter one of\n{sent}")


def check_answer(attack: bytes, answer: bytes) -> None:
    """Check that the answer is well-formed and no fault of the server."""
    for status in map(int, STATUS.findall(answer)):
        if status >= 500 and status not in ALLOWED:
            raise Finding(f"{answer[:500]!r}\nafter {attack!r}")
    for body in re.findall(rb"\r\n\r\n(\[\{.*?\}\])(?=HTTP/1|\Z)", answer, re.S):
        check_messages(attack, body)


def check_messages(attack: bytes, body: bytes) -> None:
    try:
        messages = orjson.loads(body)
    except orjson.JSONDecodeError:
        # The rest of the answer had not arrived.
        return
    for message in messages:
        error = message.get("error")
        if error is not None and not ERROR.fullmatch(error):
            raise Finding(f"an error without its form: {error!r}\nafter {attack!r}")
        if error is None and message.get("successful") is False:
            raise Finding(f"a failure without an error: {message!r}\nafter {attack!r}")
