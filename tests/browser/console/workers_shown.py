"""Answers of one worker as those of three, of which one does not answer."""

import time
from typing import Any

from playwright.sync_api import Page, Route

MISSING = {"shard": 2, "reason": "it did not answer within 1 s"}
SENTENCE = "shard 2 does not answer: requests for its sessions are refused"


def _row(shard: int, **known: Any) -> dict[str, Any]:
    started = time.time_ns() // 1_000_000 - 12 * 86_400_000 // (1 + 900 * shard)
    return {
        **{"shard": shard, "state": "serving", "since": started, "restarts": 3 * shard},
        **{"last_end": "signal 9" if shard else None},
        **{"pid": 4711 + shard, "sessions": 1204 - 17 * shard, "store": "available", "links": 1},
        **{"behind_ms": 2, **known},
    }


def rows() -> list[dict[str, Any]]:
    unknown = dict.fromkeys(("since", "pid", "sessions", "store", "links"))
    third = _row(2, state="silent", behind_ms=7310, **unknown)
    return [_row(0), _row(1, store="full"), third]


def show_three(page: Page) -> None:
    """Let the page see three workers."""

    def answer(route: Route) -> None:
        # One worker alone has no order of shards.
        response = route.fetch(url=route.request.url.replace("sort=-shard", ""))
        found = response.json()
        path = route.request.url.partition("?")[0].rpartition("/api/v1/")[2]
        match path:
            case "now":
                found |= {"sentence": SENTENCE, "unanswered": [MISSING]}
                found["shards"] = {"items": rows(), "more": 0}
            case "about":
                found["shard"] = 0
            case "sessions":
                found["items"] = [{**each, "shard": n % 2} for n, each in enumerate(found["items"])]
            case _ if path.startswith("sessions/") and "key" in found:
                found["shard"] = 1
        route.fulfill(response=response, json=found)

    page.route("**/admin/api/v1/**", answer)


def close(page: Page) -> None:
    """Close such a page once nothing is answered any more: the next test would get the error."""
    page.unroute_all(behavior="wait")
    page.close()
