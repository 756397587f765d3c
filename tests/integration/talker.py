"""A small client, for tests of what the documentation promises."""

import json
import time
import urllib.request
from typing import Any

from tests.abuse.attacker import BUSY

Json = dict[str, Any]


class Talker:
    """Speaks long-polling and keeps its cookies; each request waits for its response."""

    def __init__(self, url: str) -> None:
        self._url = f"{url}/cometd"
        # No proxy, whatever the environment says: the server is on this machine.
        self._http = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPCookieProcessor()
        )
        self._client_id: str | None = None

    def go_to(self, url: str) -> None:
        """Continue at another URL, as after a restart of the server."""
        self._url = f"{url}/cometd"

    def handshake(self, **fields: Any) -> Json:
        wanted = {"supportedConnectionTypes": ["long-polling"], **fields}
        # On a slow machine, a server may be busy and advise to try again.
        while (reply := self.send("/meta/handshake", **wanted)[0]).get("error") == BUSY:
            time.sleep(reply["advice"]["interval"] / 1000)
        self._client_id = reply.get("clientId")
        return reply

    def connect(self, **fields: Any) -> list[Json]:
        return self.send("/meta/connect", connectionType="long-polling", **fields)

    def send(self, channel: str, **fields: Any) -> list[Json]:
        return self.send_all([{"channel": channel, **fields}])

    def send_all(self, messages: list[Json]) -> list[Json]:
        batch = [{"clientId": self._client_id, **message} for message in messages]
        request = urllib.request.Request(
            self._url, json.dumps(batch).encode(), {"Content-Type": "application/json"}
        )
        with self._http.open(request, timeout=60) as response:
            replies: list[Json] = json.load(response)
        return replies
