"""Administrative calls about many dead letters."""

import http.client
import json
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

from bench.processes import Server
from bench.stalls.clients import Client
from holdfast.delivery.basics.ranking import MOST, RankingKind

_TIMEOUT_S = 120.0
_MONTH_S = 29 * 24 * 3600


class Administration:
    """The server's REST API, as its operator uses it."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._token = (Path(server.data) / "admin-token").read_text().strip()

    def ask(self, method: str, path: str, body: object = None) -> bytes:
        """Send one call; return the response."""
        link = http.client.HTTPConnection(urlsplit(self._server.url).netloc, timeout=_TIMEOUT_S)
        headers = {"Authorization": f"Bearer {self._token}"}
        text = None
        if isinstance(body, bytes):
            text, headers["Content-Type"] = body, "application/x-ndjson"
        elif body is not None:
            text, headers["Content-Type"] = json.dumps(body).encode(), "application/json"
        link.request(method, f"/admin/api/v1{path}", text, headers)
        answer = link.getresponse()
        found = answer.read()
        link.close()
        if answer.status >= 400:
            raise RuntimeError(f"{method} {path}: {answer.status} {found[:200]!r}")
        return found

    def fill(self, letters: int) -> None:
        """Make dead letters: a refusal makes one, the others are imported copies of it."""
        client = Client(self._server.url, {"delivery": {"session": "stall-dead/1"}})
        client.connect()
        client.say({"channel": "/meta/subscribe", "subscription": "/dead"})
        client.say({"channel": "/dead", "data": {"n": 1}})
        [event] = [each for each in client.connect() if "data" in each]
        seq = event["ext"]["delivery"]["seq"]
        client.connect(
            delivery={"verdicts": [{"seq": seq, "errorCode": "user.update.deadMessage"}]}
        )
        letter = json.loads(self.ask("GET", "/dead-letters/export").splitlines()[0])
        first = int(letter["id"]) - letters
        lines = [json.dumps({**letter, "id": str(first + n)}) for n in range(letters)]
        step = 10_000
        for at in range(0, letters, step):
            self.ask("POST", "/dead-letters/import", "\n".join(lines[at : at + step]).encode())
        client.close()


Call = Callable[[Administration], int]


def _list(admin: Administration) -> int:
    return len(admin.ask("GET", "/dead-letters?limit=500"))


def _find(admin: Administration) -> int:
    """Search for something that no letter has: this reads the most letters."""
    return len(admin.ask("GET", "/dead-letters?channel=/dead&state=replayed"))


def _groups(admin: Administration) -> int:
    return len(admin.ask("GET", "/dead-letters/groups"))


def _export(admin: Administration) -> int:
    return len(admin.ask("GET", "/dead-letters/export"))


def _rehearse(admin: Administration) -> int:
    wanted = {"filter": {"channel": "/dead"}, "dry_run": True}
    return len(admin.ask("POST", "/replays", wanted))


def _past(admin: Administration) -> int:
    """Read the figures of a day by minute and of a month by hour, and all rankings of both."""
    month = f"since={int(time.time() - _MONTH_S) * 1000}"
    paths = [f"{name}?{since}" for name in ("past", "top") for since in ("", month)]
    ranked = [(path, f"&by={by}&limit={MOST}") for path in paths[2:] for by in RankingKind]
    every = [*paths[:2], *map("".join, ranked)]
    return sum(len(admin.ask("GET", f"/figures/{path}")) for path in every)


def _purge(admin: Administration) -> int:
    wanted = {"filter": {"channel": "/dead"}, "dry_run": False}
    return len(admin.ask("POST", "/dead-letters/purge", wanted))


# In this order, because the last one leaves no letters.
ADMIN: dict[str, Call] = {
    "admin-list": _list,
    "admin-find": _find,
    "admin-groups": _groups,
    "admin-export": _export,
    "admin-rehearse": _rehearse,
    "admin-past": _past,
    "admin-purge": _purge,
}
