"""Small mutations of valid requests."""

from collections.abc import Callable
from random import Random
from typing import Any

# Values that some code may not expect.
ODD_VALUES: list[Any] = [
    *(None, True, False, 0, -1, 1, 0.5, -0.0, 5.0, 1e308, 2**31, 2**53 + 1, 2**63, 2**64, -(2**63)),
    *(
        "",
        " ",
        "5",
        "null",
        "/",
        "//",
        "/**",
        "/*",
        "/a/**/b",
        "/meta/**",
        "/meta/connect",
        "/sys/x",
    ),
    *(
        "__proto__",
        "constructor",
        "\0",
        "\r\n",
        "\u2028",
        "\U0001f600",
        "é",
        "x" * 3000,
        "/x" * 500,
    ),
    *([], {}, [[]], [{}], [None], {"": ""}, [1] * 300, {"a": {"b": {"c": []}}}),
    *({"timeout": 10**18}, {"timeout": -1}, {"seq": 1, "code": "user.update.holdback"}),
]
# JSON that Python does not write; it replaces a number in the text.
ODD_TEXTS = [
    *(b"NaN", b"-Infinity", b"1e400", b"1" * 500, b"01", b"+1", b"0x10", b"1.", b".5", b"1e"),
    *(
        b'"\\ud83d"',
        b'"\\udc00\\ud800"',
        b'"\\u0000"',
        b'"\\x"',
        b'"',
        b"[" * 600,
        b"nul",
        b"/**/1",
    ),
]
ODD_BYTES = [
    *(
        b"\0",
        b"\r",
        b"\n",
        b"\r\n",
        b"\r\n\r\n",
        b"\n ",
        b"\t",
        b"\x7f",
        b"\x80",
        b"\xff",
        b"\xc0\x80",
    ),
    *(b"%00", b"%", b"%zz", b"..", b"/../", b"//", b"?", b"#", b"&", b"=", b";", b":", b",", b'"'),
    *(b"<script>", b"\xed\xa0\x80", b"\xf0\x9f\x98", b"0\r\n\r\n", b"-1", b"99999999999999999999"),
]
ODD_HEADERS = [
    *(b"Content-Length: 0", b"Content-Length: -1", b"Content-Length: 1e3", b"Content-Length: 5, 5"),
    *(b"Transfer-Encoding: chunked", b"Transfer-Encoding: gzip, chunked", b"Transfer-Encoding: x"),
    *(b"Content-Encoding: gzip", b"Content-Encoding: deflate", b"Content-Encoding: br"),
    *(
        b"Content-Type: application/x-www-form-urlencoded",
        b"Content-Type: text/json; charset=utf-16",
    ),
    *(b"Content-Type: application/json; charset=\xff", b"Expect: 100-continue", b"Expect: nothing"),
    *(b"Connection: close", b"Connection: Upgrade", b"Upgrade: websocket", b"Upgrade: h2c"),
    *(b"Origin: null", b"Origin: http://evil.example", b"Origin: http://[::1", b"Origin:"),
    *(b"Cookie: BAYEUX_BROWSER", b'Cookie: BAYEUX_BROWSER="\\"', b"Cookie: " + b"a=b; " * 500),
    *(
        b"Host: ",
        b"Host: evil.example",
        b"Host: [::1]:x",
        b"X-Forwarded-For: ::1, x",
        b"Forwarded: for=",
    ),
    *(b"Authorization: Bearer ", b"Authorization: x", b": no name", b"no colon", b" folded: x"),
    *(
        b"Sec-WebSocket-Key: x",
        b"Sec-WebSocket-Version: 99",
        b"Range: bytes=0-0",
        b"If-None-Match: *",
    ),
]


class Mutator:
    """Mutates at random, in the same way for the same seed."""

    def __init__(self, dice: Random) -> None:
        self.dice = dice

    def messages(self, messages: list[dict[str, Any]]) -> list[Any]:
        """The messages with a few values changed, removed or repeated."""
        mutated: list[Any] = [_copy(message) for message in messages]
        for _ in range(self.dice.randint(0, 3)):
            self._mutate_value(mutated)
        return mutated

    def text(self, text: bytes) -> bytes:
        """The text, sometimes as JSON that only some parsers accept, or as no JSON."""
        if self.dice.random() < 0.7:
            return text
        if self.dice.random() < 0.5:
            return self.raw(text)
        places = [at for at, byte in enumerate(text) if byte in b":,"]
        if not places:
            return text
        at = self.dice.choice(places) + 1
        return (
            text[:at]
            + self.dice.choice(ODD_TEXTS)
            + (b"," if text[at - 1] == 0x2C else b"")
            + text[at:]
        )

    def raw(self, data: bytes) -> bytes:
        """The bytes with some of them changed, removed or repeated."""
        for _ in range(self.dice.choice([1, 1, 1, 2, 5])):
            data = self.dice.choice(_BYTE_MUTATIONS)(self.dice, data)
        return data

    def head(self, request: bytes) -> bytes:
        """The head with headers changed, removed, repeated or moved."""
        head, end, body = request.partition(b"\r\n\r\n")
        lines = head.split(b"\r\n")
        for _ in range(self.dice.randint(1, 3)):
            at = self.dice.randrange(len(lines))
            match self.dice.randrange(5):
                case 0:
                    lines.insert(at + 1, self.dice.choice(ODD_HEADERS))
                case 1 if len(lines) > 1:
                    del lines[at]
                case 2:
                    lines.insert(at, lines[at])
                case 3:
                    lines[at] = self.raw(lines[at])
                case _:
                    lines.append(self.dice.choice(ODD_HEADERS))
        return b"\r\n".join(lines) + end + body

    def _mutate_value(self, root: list[Any]) -> None:
        holder, key = self._somewhere(root)
        match self.dice.randrange(4):
            case 0 if isinstance(holder, dict):
                del holder[key]
            case 1 if isinstance(holder, dict):
                holder[
                    self.dice.choice(["", "id", "ext", "clientId", "advice", "data", key * 2])
                ] = _copy(holder[key])
            case 2:
                holder[key] = [_copy(holder[key])]
            case _:
                holder[key] = _copy(self.dice.choice(ODD_VALUES))

    def _somewhere(self, root: list[Any]) -> tuple[Any, Any]:
        """A random place in the tree, near the root or far from it."""
        holder: Any = root
        key: Any = self.dice.randrange(len(root))
        while isinstance(inner := holder[key], dict | list) and inner and self.dice.random() < 0.8:
            holder = inner
            key = (
                self.dice.choice(list(inner))
                if isinstance(inner, dict)
                else self.dice.randrange(len(inner))
            )
        return holder, key


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copy(inner) for key, inner in value.items()}
    return [_copy(inner) for inner in value] if isinstance(value, list) else value


def _flip(dice: Random, data: bytes) -> bytes:
    if not data:
        return data
    at = dice.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << dice.randrange(8)]) + data[at + 1 :]


def _insert(dice: Random, data: bytes) -> bytes:
    at = dice.randint(0, len(data))
    return data[:at] + dice.choice(ODD_BYTES) + data[at:]


def _remove(dice: Random, data: bytes) -> bytes:
    begin = dice.randint(0, len(data))
    return data[:begin] + data[begin + dice.choice([1, 2, 8, 64]) :]


def _repeat(dice: Random, data: bytes) -> bytes:
    begin = dice.randint(0, len(data))
    piece = data[begin : begin + dice.choice([1, 2, 16, 200])]
    return data[:begin] + piece * dice.choice([2, 3, 50]) + data[begin:]


def _cut(dice: Random, data: bytes) -> bytes:
    return data[: dice.randint(0, len(data))]


_BYTE_MUTATIONS: list[Callable[[Random, bytes], bytes]] = [_flip, _insert, _remove, _repeat, _cut]
