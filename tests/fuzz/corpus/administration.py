"""What the administration was asked for, by an operator; expected is the status."""

from tests.abuse.attacker import request
from tests.fuzz.corpus.finding import Finding

_LETTER = "7" * 19
TOKEN = "the operator's token"
_ENTERS = {"Content-Type": "application/json", "Authorization": f"Bearer {TOKEN}"}


def _ask(line: str, body: bytes = b"", **headers: str) -> bytes:
    method, _, path = line.partition(" ")
    return request(body, {**_ENTERS, **headers}, method=f"{method} /admin/api/v1{path}")


_HOLD, _PURGE = "PUT /sessions/joe/1/hold", "POST /dead-letters/purge"

ADMINISTRATION = [
    *[
        Finding("a token that is none", _ask("GET /sessions", Authorization=said), 401)
        for said in ("", "Bearer", "Bearer ", "Basic x", "Bearer \xff\xfe", "Bearer " + "x" * 4000)
    ],
    Finding("a foreign page", _ask("DELETE /sessions/joe/1", Origin="https://evil.example"), 403),
    Finding("a page without an origin", _ask("DELETE /sessions/joe/1", Origin="null"), 403),
    Finding(
        "a name that leads here (DNS rebinding)", _ask("GET /about", Host="rebound.example"), 421
    ),
    Finding("a way out of it", _ask("GET /%2e%2e/%2e%2e/etc/passwd"), 404),
    Finding("a method that there is not", _ask("PATCH /sessions"), 405),
    Finding("compressed: never inflated", _ask(_HOLD, b"x", **{"Content-Encoding": "gzip"}), 415),
    *[
        Finding("a parameter out of its bounds", _ask(f"GET {path}"), 400)
        for path in (
            "/sessions?limit=0",
            "/sessions?limit=1e9",
            "/sessions?limit=1&limit=2",
            "/sessions?cursor=%00",
            "/sessions?cursor=" + "x" * 4097,
            "/sessions?prefix=%0d%0aSet-Cookie:x",
            "/sessions?__proto__=1",
            "/sessions/joe/1.0",
            "/sessions/joe/" + "9" * 30,
            "/sessions/jo%0ae/1",
            "/sessions/jo%2fe/1",
            "/dead-letters?since=-1",
            "/dead-letters?code=user.*",
            "/dead-letters/" + "7" * 18 + "%0a",
            "/replays/*",
            "/commands?command=",
            "/audit?limit=many",
            # Redis is not asked for what is no place of its own.
            "/audit?cursor=9-9-9",
        )
    ],
    *[
        Finding("a name that is no pattern", _ask(f"GET /sessions/{name}/1"), 404)
        for name in ("%2a", "jo%2a", "joe%3a1", "joe%27%3b--", "toString", "__proto__", "[a-z]")
    ],
    *[
        Finding("a body that means nothing", _ask(_HOLD, body), 400)
        for body in (
            b"",
            b"null",
            b"[]",
            b'{"reason":"x"} {}',
            b'{"reason":"\xff"}',
            b'{"reason":"\\u0000"}',
            b'{"reason":"a\\u001b[2J"}',
            b'{"reason":"\\ud800"}',
            b'{"reason":"x","until":NaN}',
            b'{"reason":"x","until":253402300800000}',
            b'{"reason":"x","until":18446744073709551616}',
            b'{"reason":"x","who":"somebody"}',
            b"[" * 100_000,
            b'{"a":' * 20_000,
        )
    ],
    *[
        Finding("letters that nobody meant", _ask(_PURGE, body), 400)
        for body in (
            b"{}",
            b'{"dry_run":"false","all":true}',
            b'{"dry_run":true,"all":1}',
            b'{"dry_run":true,"filter":{"chanel":"/x"}}',
            b'{"dry_run":true,"filter":{"ids":["7"]}}',
        )
    ],
    Finding("a letter that there is not", _ask(f"GET /dead-letters/{_LETTER}"), 404),
    Finding(
        "a replay without a pace",
        _ask("POST /replays", b'{"dry_run":true,"all":true,"options":{"rate":0}}'),
        400,
    ),
    Finding(
        "a command longer than any",
        _ask("POST /commands", b'{"command":"?' + b"x" * 5000 + b'"}'),
        400,
    ),
    Finding("a body where none belongs", _ask("DELETE /sessions/joe/1", b"{}"), 400),
]
