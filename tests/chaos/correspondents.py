"""Clients that address and ask each other, share work, and catch up with what they missed."""

from typing import Any

from tests.chaos.arena import Arena
from tests.chaos.manners import Manner
from tests.chaos.receiver import Receiver

# A subject with one session, one with several, sessions, and one that never exists.
ADDRESSES = ("tom", "tom", "sue", "sue", "tom/1", "sue/2", "joe/1", "nobody/1")
JOBS = "/jobs/a"
# One keeps all messages, the other only the newest.
NEWS = ("/news/long", "/news/short")
# Named sessions answer the first, one without a name the second.
QUESTIONS = ("/ask/a", "/ask/b")

FEW: dict[str, Any] = {"retries": -1, "queue": {"maxEntries": 10}}
PAUSE_S = 0.05


def add_correspondents(ring: Arena) -> Receiver:
    """Add all of them; return the receiver whose messages go to no other while it is away."""
    _add_workers(ring)
    _add_readers(ring)
    _add_requesters(ring)
    return _add_addressees(ring)


def _add_addressees(ring: Arena) -> Receiver:
    ring.add_receiver("sue/1", Manner(leaves_after=10, crashes_after=9), channels=())
    ring.add_receiver("sue/2", Manner(holds_back_at=60, held_s=0.5, options=FEW), channels=())
    ring.add_publisher(
        "postman",
        channels=("/post/a", "/post/b"),
        addresses=ADDRESSES,
        priorities=(4, 5),
        pause_s=PAUSE_S,
    )
    manner = Manner(refuses_one_in=40, leaves_after=7, options=FEW)
    return ring.add_receiver("tom/1", manner, channels=())


def _add_workers(ring: Arena) -> None:
    for name, manner in (
        ("ida/1", Manner(is_explicit=True, refuses_one_in=10, leaves_after=12)),
        ("max/1", Manner(refuses_one_in=15, stumbles_at=40, options=FEW)),
        ("eva/1", Manner(crashes_after=9)),
    ):
        ring.add_receiver(name, manner, channels=(JOBS,))
    ring.add_publisher("boss", channels=(JOBS,), is_work=True, has_keys=True, pause_s=PAUSE_S)


def _add_requesters(ring: Arena) -> None:
    ring.add_responder("pat/1", QUESTIONS[0])
    ring.add_responder("pam/1", QUESTIONS[0])
    ring.add_responder("nobody", QUESTIONS[1], is_named=False)
    ring.add_requester("amy/1", *QUESTIONS)


def _add_readers(ring: Arena) -> None:
    manner = Manner(gives_verdicts=False, goes_on=True, leaves_after=15)
    ring.add_receiver("reader", manner, is_named=False, channels=NEWS)
    ring.add_publisher("chronicler", channels=NEWS, pause_s=PAUSE_S)
