"""The tables of the shop, for FastAPI and Flask: orders, and an outbox in the same database."""

import hmac
import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager

from docs.examples.frameworks import push

# Stands for what your application knows of its users.
PASSWORDS = {"ada": "lovelace", "grace": "hopper"}
DATABASE = os.environ.get("DATABASE", "data/shop.db")
# Orders that a user may have.
MOST = 10
SCHEMA = """
CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY, user TEXT, item TEXT);
CREATE TABLE IF NOT EXISTS outbox (
    id INTEGER PRIMARY KEY,
    key TEXT DEFAULT (lower(hex(randomblob(16)))),
    channel TEXT,
    data TEXT
);
"""


class TooMany(Exception):
    """A user has too many orders."""


@contextmanager
def transaction() -> Iterator[sqlite3.Connection]:
    """Commit at the end of the block, or roll back if it raises an exception."""
    with closing(sqlite3.connect(DATABASE)) as db, db:
        yield db


def is_user(name: str, password: str) -> bool:
    """Return whether this is a user's password."""
    known = PASSWORDS.get(name)
    return known is not None and hmac.compare_digest(known.encode(), password.encode())


def place(db: sqlite3.Connection, user: str, item: str) -> int:
    """Place an order, with a job for the workers in the outbox. Raises `TooMany`."""
    number: int
    insert = "INSERT INTO orders (user, item) VALUES (?, ?) RETURNING id"
    [number] = db.execute(insert, (user, item)).fetchone()
    job = json.dumps({"order": number, "user": user, "item": item})
    db.execute("INSERT INTO outbox (channel, data) VALUES (?, ?)", (push.JOBS, job))
    [count] = db.execute("SELECT count(*) FROM orders WHERE user = ?", (user,)).fetchone()
    if count > MOST:
        raise TooMany
    return number


with closing(sqlite3.connect(DATABASE)) as db:
    db.executescript(SCHEMA)
