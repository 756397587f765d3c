"""What sockets were sent: frames that are wrong, too large, or too many.

Expected is the code with which the server closes, or that of a close without one; 0 if the socket
stays open and its next message is answered.
"""

import struct

from tests.abuse.attacker import BINARY, CLOSE, PING, PONG, frame
from tests.fuzz.corpus.finding import Finding

_CONTINUATION = 0x0
_OPEN, _NORMAL, _PROTOCOL, _UNSUPPORTED, _INVALID, _TOO_BIG = 0, 1000, 1002, 1003, 1007, 1009
_LARGE = 256 * 1024


def _close(code: int, reason: bytes = b"") -> bytes:
    return frame(struct.pack("!H", code) + reason, CLOSE)


FRAMES = [
    Finding("without a mask: was served", frame(b"[{}]", is_masked=False), _PROTOCOL),
    Finding("without a mask, and empty", frame(b"", is_masked=False), _PROTOCOL),
    Finding("a ping without a mask", frame(b"x", PING, is_masked=False), _PROTOCOL),
    Finding("a close without a mask", frame(b"", CLOSE, is_masked=False), _PROTOCOL),
    Finding("large and without a mask", frame(b"x" * 70_000, is_masked=False), _PROTOCOL),
    Finding(
        "a short one behind one without a mask passed",
        frame(b"[{}]", is_masked=False) + frame(b"[{}]"),
        _PROTOCOL,
    ),
    *[
        Finding(f"closed with {code}, which is none", _close(code), _PROTOCOL)
        for code in (0, 999, 1004, 1005, 1006, 1015, 2999, 5000, 65535)
    ],
    *[
        Finding(f"closed with {code}", _close(code, b"bye"), _NORMAL)
        for code in (1000, 1001, 1011, 3000, 4999)
    ],
    Finding("half a close code", frame(b"\x03", CLOSE), _PROTOCOL),
    Finding("a close with a reason that is no text", _close(1000, b"\xff\xfe"), _INVALID),
    Finding("a close without a code", frame(b"", CLOSE), _NORMAL),
    Finding("bytes instead of text", frame(b"[{}]", BINARY), _UNSUPPORTED),
    Finding("an opcode that is none", frame(b"x", 0x3), _PROTOCOL),
    Finding("a control code that is none", frame(b"x", 0xB), _PROTOCOL),
    Finding("a ping that is too long", frame(b"x" * 126, PING), _PROTOCOL),
    Finding("a ping in pieces", frame(b"x", PING, is_final=False), _PROTOCOL),
    Finding("the end of what has not begun", frame(b"[{}]", _CONTINUATION), _PROTOCOL),
    Finding("a message within a message", frame(b"[", is_final=False) + frame(b"[{}]"), _PROTOCOL),
    Finding("compressed, which nobody agreed on", b"\xc1\x80\0\0\0\0", _PROTOCOL),
    Finding("2^63 bytes and more", b"\x81\xff" + b"\xff" * 8 + b"\0" * 4, _TOO_BIG),
    Finding("2^40 bytes", b"\x81\xff" + struct.pack("!Q", 2**40) + b"\0" * 4, _TOO_BIG),
    Finding("too large: the client never learned why", frame(b"x" * (_LARGE + 1)), _TOO_BIG),
    Finding(
        "too large in two pieces",
        frame(b"x" * _LARGE, is_final=False) + frame(b"x" * 9, _CONTINUATION),
        _TOO_BIG,
    ),
    Finding(
        "too large, and many more behind it", frame(b"x" * _LARGE) + frame(b"[{}]") * 100, _TOO_BIG
    ),
    Finding("nothing", frame(b""), _INVALID),
    Finding("an empty batch", frame(b"[]"), _INVALID),
    Finding("half a character", frame(b'["\xc3'), _INVALID),
    Finding("nothing but brackets", frame(b"[" * 40_000), _INVALID),
    Finding("more values than may be", frame(b"[" * 100_000), _TOO_BIG),
    Finding(
        "empty pieces: each was a turn",
        frame(b"[{}", is_final=False)
        + frame(b"", _CONTINUATION, is_final=False) * 1000
        + frame(b"]", _CONTINUATION),
        _OPEN,
    ),
    Finding(
        "pings between pieces",
        frame(b"[{}", is_final=False) + frame(b"x", PING) + frame(b"]", _CONTINUATION),
        _OPEN,
    ),
    Finding("pings, more than others have turns", frame(b"x" * 100, PING) * 500, _OPEN),
    Finding("pongs that nobody asked for", frame(b"x", PONG) * 500, _OPEN),
    Finding("thousands of the smallest messages in one piece", frame(b"{}") * 2000, _OPEN),
]
