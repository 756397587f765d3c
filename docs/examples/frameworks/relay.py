"""Publishes what transactions have put into the outbox: nothing is lost, nothing comes twice."""

import json
import sqlite3
import sys
import time
from contextlib import closing, suppress

import httpx

from docs.examples.frameworks import push

PAUSE_S = 0.2


def relay(db: sqlite3.Connection) -> None:
    """Publish the oldest rows, and delete those that the server has accepted."""
    rows = db.execute("SELECT id, key, channel, data FROM outbox ORDER BY id LIMIT 100").fetchall()
    if not rows:
        return
    results = push.publish(
        *(
            {"channel": channel, "data": json.loads(data), "ext": {"delivery": {"key": key}}}
            for _, key, channel, data in rows
        )
    )
    for (number, *_), result in zip(rows, results, strict=True):
        if result["successful"]:
            db.execute("DELETE FROM outbox WHERE id = ?", (number,))
        else:
            print(f"row {number} waits: {result['error']}", flush=True)
    db.commit()


def wait_for_table(db: sqlite3.Connection) -> None:
    """Wait until the application has made its tables: it may start later."""
    asked = "SELECT 1 FROM sqlite_master WHERE name = 'outbox'"
    if db.execute(asked).fetchone() is None:
        print("waiting for the tables of the application", flush=True)
    while db.execute(asked).fetchone() is None:
        time.sleep(PAUSE_S)


if __name__ == "__main__":
    with suppress(KeyboardInterrupt), closing(sqlite3.connect(sys.argv[1])) as db:
        wait_for_table(db)
        while True:
            try:
                relay(db)
            except httpx.HTTPStatusError as refused:
                print(f"the outbox waits: {refused.response.text}", flush=True)
            except httpx.TransportError as error:
                print(f"the outbox waits: {error}", flush=True)
            time.sleep(PAUSE_S)
