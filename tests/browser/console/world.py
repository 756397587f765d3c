"""Receivers, messages and dead letters for the console to show, made over the wire alone."""

import json
import time
import urllib.request
from pathlib import Path
from socket import gethostname
from typing import Any

from redis import Redis

from holdfast.pipeline.reports.columns import COLUMNS, TITLES
from holdfast.pipeline.results import of_audit
from holdfast.store.format.keys import RedisKeys
from tests.integration.talker import Talker

FAILED = "user.update.error"


HOUR_MS = 3_600_000
# The rules of channels, for a work queue.
RULES = {
    "/jobs/*": {"work_queue": True, "topic": True},
    "/faulty": {"guard": True},
}
CHANNELS = ("/orders/paid", "/orders/shipped", "/orders/cancelled", "/news")


class World:
    """A server with sessions and messages for an operator to look at."""

    def __init__(self, url: str, data: Path) -> None:
        self.url = url
        self.operator = (data / "admin-token").read_text("ascii").strip()
        self.reader = (data / "reader-token").read_text("ascii").strip()
        self._store = str(data / "store.sock")
        self.talkers: dict[str, Talker] = {}
        self.publisher = Talker(url)
        # A named session does not expire while it does not connect.
        self.publisher.handshake(ext={"delivery": {"session": "shop/1"}})

    def receiver(self, name: str, *channels: str) -> Talker:
        """A named session that gives verdicts, with nothing in flight."""
        talker = self.talkers[name] = Talker(self.url)
        talker.handshake(ext={"ack": True, "delivery": {"session": name}})
        self._connect(talker, 0)
        talker.send("/meta/subscribe", subscription=list(channels))
        return talker

    def publish(self, channel: str, *data: Any, **options: Any) -> None:
        ext = {"delivery": options} if options else {}
        self.publisher.send_all([{"channel": channel, "data": each, "ext": ext} for each in data])

    def take(self, talker: Talker, ack: int = 0) -> list[Any]:
        """The events that the session is handed, which stay unacked."""
        return [each for each in self._connect(talker, ack) if "data" in each]

    def refuse(self, talker: Talker, text: str, code: str = FAILED) -> list[str]:
        """Refuse all that the receiver gets; return the ids of the messages."""
        deliveries = [event["ext"]["delivery"] for event in self.take(talker)]
        verdicts = [{"seq": each["seq"], "errorCode": code, "message": text} for each in deliveries]
        talker.send("/service/delivery", data=verdicts)
        return [each["id"] for each in deliveries]

    def settle(self, name: str) -> None:
        """Have the session get and ack all that waits for it."""
        talker = self.talkers[name]
        replies = self._connect(talker, 0)
        self._connect(talker, replies[-1]["ext"]["ack"])

    def results(self, name: str, rows: list[dict[str, Any]]) -> None:
        """Write a result, as the pipeline does."""
        now = time.time_ns() // 1_000_000
        about = {"title": TITLES[name], "columns": [each._asdict() for each in COLUMNS[name]]}
        told = {"result": name, "at": now, "since": now - 24 * HOUR_MS, "until": now, **about}
        self.write({**told, "rows": rows})

    def write(self, result: dict[str, Any]) -> None:
        place = RedisKeys("holdfast").pipeline_result(result["result"])
        store = Redis(unix_socket_path=self._store)
        store.set(place, json.dumps({"v": 2, **result}))
        store.close()

    def lake(self, folder: Path) -> None:
        """Register these tables, as an ingest on this machine does."""
        store = Redis(unix_socket_path=self._store)
        store.hset(RedisKeys("holdfast").lakes, "1", f"{gethostname()}:{folder}")
        store.close()

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Ask the administration as the operator."""
        request = urllib.request.Request(
            f"{self.url}/admin/api/v1/{path}",
            None if body is None else json.dumps(body).encode(),
            {"Authorization": f"Bearer {self.operator}", "Content-Type": "application/json"},
            method=method,
        )
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=60) as response:
            text = response.read()
        return json.loads(text) if text else None

    def _connect(self, talker: Talker, ack: int) -> list[Any]:
        return talker.connect(advice={"timeout": 0}, ext={"ack": ack})


def ordinary(world: World) -> World:
    """A shop on an ordinary day: most is well, some of it is not."""
    stock = world.receiver("stock/1", "/orders/**")
    bills = world.receiver("bills/1", "/orders/paid", "/orders/cancelled")
    world.receiver("mail/1", "/orders/shipped")
    world.receiver("mail/2", "/orders/shipped", "/news")
    for number in range(5):
        world.publish("/orders/paid", {"order": 4711 + number, "total": 19.9 + number, "lines": 2})
    world.refuse(stock, "no such article: 17", "user.update.illegalArgument")
    world.refuse(bills, "total does not match the lines")
    world.publish("/orders/cancelled", {"order": 4712, "by": "customer"})
    world.refuse(bills, "bill 4712 was never written", "user.update.deadMessage")
    parcels = [{"order": 4700 + n, "parcel": f"P-{n:05}"} for n in range(8)]
    world.publish("/orders/shipped", *parcels)
    world.take(stock)
    world.publish("/news", {"headline": "Closed on Monday"})
    prices = {"destroyDelay": -1, "history": {"maxEntries": 10}}
    world.publish("/prices", {"tea": 2.5}, {"tea": 2.75}, topic=prices)
    for text in ("Call me.", "It is about order 4712."):
        joe = {"name": "joe", "forceQueuing": True}
        world.publisher.send("/service/ptp", data={"destinations": [joe], "content": text})
    for number in range(3):
        world.publish("/jobs/pictures", {"picture": number, "width": 640})
    for hours in (2, 1):
        world.publish("/orders/reminded", {"after": hours}, delay=hours * 3_600_000)
    hold = {"reason": "the mail relay is down until noon", "until": None}
    world.ask("PUT", "sessions/mail/1/hold", hold)
    return world


def troubled(world: World) -> None:
    """Have receivers refuse the messages of a channel until the server holds it."""
    names = [f"disk-{n}/1" for n in "abc"]
    receivers = [world.receiver(name, "/faulty") for name in names]
    world.publish("/faulty", "all is well")
    for name in names:
        world.settle(name)
    for number in range(1000):
        if world.ask("GET", "held-channels")["items"]:
            return
        world.publish("/faulty", number)
        for receiver in receivers:
            world.refuse(receiver, "the disk is full")


def examined(world: World) -> World:
    """Write results, as if the pipeline had run."""
    now = time.time_ns() // 1_000_000
    hour = now - now % HOUR_MS
    [letter] = world.ask("GET", "dead-letters?limit=1")["items"]
    world.results(
        "latency",
        [
            {
                "hour": hour - past * HOUR_MS, "channel": channel, "n": 900 - 100 * place,
                "delivery_p50": 0.4, "delivery_p95": 2.0, "delivery_p99": 3.1 * 7 ** (past % 5),
                "delivery_max": 9000.0,
            }
            for past in range(20)
            for place, channel in enumerate(CHANNELS)
            if (past + place) % 6
        ],
    )  # fmt: skip
    known = {"message": letter["message"], "channel": letter["channel"], "code": letter["code"]}
    outcomes = {"channel": "/orders/paid", "published": 50, "copies": 90, "replayed": 1, "moves": 2}
    ends = {"handed": 80, "acked": 70, "dead": 11, "expired": 0, "discarded": 0, "lost": 0}
    world.results("funnel", [{**outcomes, **ends, "open": 10, "share": 0.7692}])
    world.results("poison", [{**known, "receivers": 2, "dead": 2, "share": 1.0}])
    advice = {"channel": "/orders/paid", "retried": 40, "succeeded": 31, "share": 0.775}
    world.results(
        "holdback-advice",
        [{**advice, "success_p50": 4200.0, "backoff": 5000, "max_attempts": 6}],
    )
    cause = {name: letter[name] for name in ("code", "channel", "fingerprint")}
    span = {"first": now - 9 * HOUR_MS, "last": now - 60_000}
    wording = {"code": letter["code"], "wording": "order * of * is unknown"}
    counts = {"refusals": 12, "dead": 11, "receivers": 2, "channels": 3, "example": "/orders/*"}
    world.results("causes", [{**wording, **counts, **span}])
    trend = {"channel": "/orders/paid", "waiting": 120, "hour_before": 150, "day_before": 0}
    world.results("trend", [{**trend, "came": 40, "went": 70, "empty": now + 4 * HOUR_MS}])
    lag = {"hour": hour, "receiver": "stock/1", "acked": 70}
    world.results("lag", [{**lag, "lag_p50": 900.0, "lag_p95": 61_000.0, "lag_max": 90_000.0}])
    refused = {"reason": "publish_denied", "channel": "/orders/secret", "refused": 17}
    world.results("refused-publishes", [{**refused, **span}])
    world.results("dead", [{**cause, "dead": 11, "receivers": 2, **span}])
    world.write(of_audit({"never_handed": 2}))
    return world
