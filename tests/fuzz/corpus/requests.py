"""HTTP that was a finding: heads, hosts, origins, cookies, bodies, scripts, files, upgrades.

Expected is the status of the first answer. What has an effect asks for a handshake.
"""

import gzip
import zlib
from urllib.parse import quote

import orjson

from tests.abuse.attacker import HANDSHAKE, MIB, frame, request
from tests.fuzz.corpus.finding import Finding

_HELLO = orjson.dumps([HANDSHAKE])
_OWN, _EVIL = "http://holdfast.localhost", "http://evil.test"
_UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
}
_FORM = {"Content-Type": "application/x-www-form-urlencoded"}
_OF_SCRIPT = {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Dest": "script"}


def _post(**headers: str) -> bytes:
    return request(_HELLO, {name.replace("_", "-"): value for name, value in headers.items()})


def _get(path: str, **headers: str) -> bytes:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return request(b"", named, method=f"GET {path}")


def _upgrade(**headers: str) -> bytes:
    return _get("/cometd", **{**_UPGRADE, **headers})


def _chunked(coding: str, body: bytes) -> bytes:
    whole = request(b"", {"Transfer-Encoding": coding})
    return whole.replace(b"Content-Length: 0\r\n", b"") + body


def _inflated(body: bytes, encoding: str = "gzip") -> bytes:
    return request(body, {"Content-Encoding": encoding})


def _script(query: str, **headers: str) -> bytes:
    return _get(f"/cometd?{query}", **headers)


def _said(text: bytes) -> str:
    return quote(text.decode("latin-1"), safe="")


HEADS = [
    Finding("an expectation that is no text", _get("/", Expect="\xff"), 400),
    Finding("a key of a socket that is no text", _upgrade(Sec_WebSocket_Key="\xff"), 400),
    Finding("a version that is no text", _upgrade(Sec_WebSocket_Version="\xff"), 400),
    Finding("a protocol that is no text", _upgrade(Sec_WebSocket_Protocol="\xff"), 400),
    Finding(
        "a date with more hours than C has",
        _get("/", If_Modified_Since=f"Thu, 01 Jan 2000 {'9' * 17}:00:00 GMT"),
        400,
    ),
    Finding("a year that is none", _get("/", If_Range=f"Thu, 01 Jan {'9' * 17} 00:00:00 GMT"), 400),
    Finding("a file's name longer than file systems have", _get("/static/" + "a" * 300), 400),
    Finding(
        "the same in an absolute target", _get("http://holdfast.localhost/static/" + "a" * 300), 400
    ),
    Finding(
        "a length and chunks: read by two parsers in two ways",
        request(b"0\r\n\r\n", {"Transfer-Encoding": "chunked"}),
        400,
    ),
    Finding("two lengths", request(_HELLO, {"content-length": "3"}), 400),
    Finding("a length with a sign", request(b"x", {"Content-Length": "+1"}), 400),
    Finding("a length of 2^64", request(b"x", {"Content-Length": str(2**64)}), 400),
    Finding(
        "a transfer coding that nobody decodes",
        _chunked("gzip, chunked", b"2\r\n[]\r\n0\r\n\r\n"),
        501,
    ),
    Finding("a coding with a parameter", _chunked("x;q=1 , chunked", b"2\r\n[]\r\n0\r\n\r\n"), 501),
    Finding("a chunk that is no number", _chunked("chunked", b"z\r\n\r\n"), 400),
    Finding("a chunk with a sign", _chunked("chunked", b"-1\r\n\r\n"), 400),
    Finding("a folded line", _post(X="a\r\n Content-Length: 3"), 400),
    Finding("a line feed alone", _post(X="y\nX-Injected: z"), 400),
    Finding("a zero in a head", _post(X="\0"), 400),
    Finding("more headers than may be", request(b"[]", {f"X-{n}": "y" for n in range(200)}), 400),
    Finding("a head that is too long", _post(Cookie="a=b; " * 10_000), 400),
    Finding("the beginning of HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
    Finding("the beginning of TLS", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),
    Finding(
        "another address, by nobody whose word counts",
        _post(X_Forwarded_For="::1, x", Forwarded="for="),
        200,
    ),
]

HOSTS = [
    *[
        Finding("a name that leads here (DNS rebinding)", _post(Host=host), 421)
        for host in (
            *("", "example.org", "localhost.evil.example", "127.0.0.1.evil.example", "0x7f.1"),
            *("2130706433", "[::1].evil.example", "localhost:evil", "localhost:80:80", "[::1"),
        )
    ],
    Finding("two hosts", request(_HELLO, {"host": "localhost"}), 400),
    Finding("for a socket", _upgrade(Host="rebound.example"), 421),
    Finding("for a file", _get("/static/welcome.js", Host="rebound.example"), 421),
    Finding("for figures", _get("/metrics", Host="rebound.example"), 421),
    Finding("an own name, spelt otherwise", _post(Host="LOCALHOST.:8080"), 200),
]

ORIGINS = [
    *[
        Finding("a foreign page", _post(**headers), 403)
        for headers in (
            {"Origin": _EVIL},
            {"Origin": "null"},
            {"Origin": ""},
            {"Origin": f"{_OWN}.evil.test"},
            {"Origin": f"{_OWN}:81"},
            {"Origin": f"{_OWN}, {_EVIL}"},
            {"Origin": f"{_OWN} {_EVIL}"},
            {"Origin": _OWN, "origin": _EVIL},
            {"Origin": "http://[::1"},
            {"Origin": "http://\xe9\x80"},
            {"Sec_Fetch_Site": "cross-site"},
            {"Sec_Fetch_Site": "nonsense"},
            {"Sec_Fetch_Site": "same-origin", "sec_fetch_site": "cross-site"},
            {"Referer": f"{_EVIL}/{_OWN}/"},
            {"Referer": f"{_OWN}@evil.test/"},
            {"Referer": "about:blank"},
        )
    ],
    Finding("a form of one", request(b"message=" + _HELLO, {**_FORM, "Origin": "null"}), 403),
    Finding("a socket of one", _upgrade(Origin=_EVIL), 403),
    Finding("a preflight of one", request(b"", {"Origin": _EVIL}, method="OPTIONS /cometd"), 200),
    Finding("our own page", _post(Origin="HTTP://HOLDFAST.localhost:80"), 200),
]

# Some of them kept out who had the right one behind them.
COOKIES = [
    Finding("a cookie that is none", _post(Cookie="BAYEUX_BROWSER"), 200),
    Finding("an odd one", _post(Cookie='BAYEUX_BROWSER="\\"; BAYEUX_BROWSER=<>; =;;'), 200),
    Finding(
        "hundreds of them", _post(Cookie="; ".join(f"BAYEUX_BROWSER=x{n}" for n in range(200))), 200
    ),
    Finding("in two lines", _post(Cookie="BAYEUX_BROWSER=a", cookie="BAYEUX_BROWSER=b"), 200),
    Finding("no text", _post(Cookie="BAYEUX_BROWSER=\xff\xfe"), 200),
]

BODIES = [
    Finding("more than may be, told before", request(b"[", {"Content-Length": str(2**31)}), 413),
    Finding("more than may be", request(b" " * (256 * 1024 + 1)), 413),
    Finding(
        "chunks of one byte each", _chunked("chunked", b"1\r\n \r\n" * 20_000 + b"0\r\n\r\n"), 400
    ),
    Finding(
        "8 KB that inflate to 8 MB: 0.25 s of everybody",
        _inflated(gzip.compress(b"[1" + b" " * 8 * MIB + b"]")),
        413,
    ),
    Finding("deflated likewise", _inflated(zlib.compress(b" " * 4 * MIB), "deflate"), 413),
    Finding("gzip of gzip", _inflated(gzip.compress(gzip.compress(b" " * MIB))), 400),
    Finding("two encodings", _inflated(gzip.compress(b"[]"), "gzip, gzip"), 415),
    Finding("one that some servers know", _inflated(b"x", "br"), 415),
    Finding(
        "many files of gzip: each was decoded twice", _inflated(gzip.compress(b"") * 5000), 400
    ),
    Finding("gzip without an end", _inflated(gzip.compress(_HELLO)[:-4]), 400),
    Finding("a head of gzip that goes on", _inflated(b"\x1f\x8b\x08\x1c" + b"\xff" * 20_000), 400),
    Finding("nothing, compressed", _inflated(b""), 400),
    Finding(
        "a bomb where nobody asked for one",
        request(gzip.compress(b" " * MIB), {"Content-Encoding": "gzip"}, method="POST /nowhere"),
        404,
    ),
    Finding(
        "a text encoding that Python looks for on its disk",
        request(_HELLO, {"Content-Type": "text/json; charset=klingon"}),
        415,
    ),
    Finding(
        "one that is no text encoding",
        request(_HELLO, {"Content-Type": "text/json; charset=base64"}),
        415,
    ),
    Finding(
        "UTF-8 that is said to be UTF-16",
        request(b"[{}]x", {"Content-Type": "text/json; charset=utf-16"}),
        400,
    ),
]

FORMS = [
    Finding("files", request(b"--x--", {"Content-Type": "multipart/form-data; boundary=x"}), 415),
    Finding("many fields: each was read", request(b"a=b&" * 20_000, _FORM), 400),
    Finding("nothing but separators", request(b"&" * 50_000, _FORM), 400),
    Finding("no message", request(b"a=b", _FORM), 400),
    Finding("an escape that is no text", request(b"message=%ff", _FORM), 400),
    Finding("messages that become one array", request(b"message=[{}]&message={}", _FORM), 200),
    Finding("messages that become none", request(b"message=]&message=[", _FORM), 400),
]

SCRIPTS = [
    *[
        Finding(
            "a page that says nothing of itself took a session over",
            _script(f"jsonp=f&message={_said(_HELLO)}", **page),
            403,
        )
        for page in (
            {},
            {"Referer": ""},
            {"Sec_Fetch_Site": "none", "Sec_Fetch_Dest": "document"},
            {"Sec_Fetch_Site": "same-origin", "Sec_Fetch_Dest": "image"},
            {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Dest": "script"},
        )
    ],
    *[
        Finding(
            "a callback that is more than a name",
            _script(f"jsonp={quote(name, safe='')}&message={_said(_HELLO)}", **_OF_SCRIPT),
            400,
        )
        for name in (
            "alert(1)//",
            "f;",
            "f[0]",
            "a\r\nX-Injected: y",
            "\u2028",
            "<script>",
            "CWS\x07\x0e",
            "f" * 65,
            "",
        )
    ],
    Finding(
        "two callbacks", _script(f"jsonp=f&jsonp=g&message={_said(_HELLO)}", **_OF_SCRIPT), 400
    ),
    *[
        Finding("a message that is none", _script(f"jsonp=f&message={text}", **_OF_SCRIPT), 400)
        for text in ("", "%5B", "%ff%fe", "%ed%a0%80", "%00", "[]&message=", "null")
    ],
    Finding(
        "a callback called like a property of objects",
        _script(f"jsonp=__proto__.x&message={_said(_HELLO)}", **_OF_SCRIPT),
        200,
    ),
]

FILES = [
    Finding("a way out", _get("/static/../../etc/passwd"), 404),
    Finding("an escaped way out", _get("/static/%2e%2e/%2e%2e/etc/passwd"), 404),
    Finding("a zero in a name", _get("/static/%00"), 404),
    Finding("a name that is no text", _get("/static/%ff"), 404),
    Finding("a folder", _get("/static/"), 404),
    Finding("two slashes in front", request(_HELLO, method="POST //cometd"), 404),
    Finding("dots in the way", request(_HELLO, method="POST /x/../cometd"), 404),
]

UPGRADES = [
    Finding(
        "no version: was told the wrong one",
        request(b"", {**_UPGRADE, "Sec-WebSocket-Version": ""}, method="GET /cometd"),
        426,
    ),
    Finding("another version", _upgrade(Sec_WebSocket_Version="8"), 426),
    Finding("by HTTP/1.0", _upgrade().replace(b"HTTP/1.1", b"HTTP/1.0"), 400),
    Finding("a key that is none", _upgrade(Sec_WebSocket_Key="x"), 400),
    Finding("to something else", _post(Connection="upgrade", Upgrade="h2c"), 200),
    Finding(
        "a request behind an upgrade that is refused",
        _upgrade(Sec_WebSocket_Version="8") + _post(),
        426,
    ),
    Finding(
        "a frame without a mask along with it", _upgrade() + frame(b"[{}]", is_masked=False), 101
    ),
    Finding(
        "a token where protocols stand",
        _upgrade(Sec_WebSocket_Protocol="bearer, " + "x" * 3000),
        101,
    ),
]

REQUESTS = [
    *HEADS,
    *HOSTS,
    *ORIGINS,
    *COOKIES,
    *BODIES,
    *FORMS,
    *SCRIPTS,
    *FILES,
    *UPGRADES,
]
