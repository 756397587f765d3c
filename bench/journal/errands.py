"""What happens now and then in a generated journal: everything that is no plain publish.

Work that its workers pass on, messages that return to their subject, requests, messages that
operators or ended sessions discard, refused publishes, and delayed messages.
"""

from collections.abc import Callable

from bench.journal.diary import Diary, Receiver, Sort
from holdfast.delivery.messages.message import Message
from holdfast.delivery.shared_queues.delays import KEY
from holdfast.journal.schema import Kind

REFUSALS = (
    "user.update.deadMessage",
    "user.update.internalError",
    "user.update.illegalArgument",
)
_JOBS, _MAIL, _ASK = "/jobs/eu", "/mail", "/ask/eu"
_DELAYS = Receiver(KEY, Sort.KEPT)
_QUEUE = Receiver(f"work:{_JOBS}/0", Sort.KEPT)
_WORKERS = [Receiver(f"worker/{n}", Sort.KEPT) for n in (1, 2, 3)]
# Shares of the work that is refused, and of requests with each end.
_REFUSED = 0.3
_ENDS = {"answered": 70, "refused": 10, "timeout": 10, "no_responders": 10}
_TIMEOUT_MS = 10_000
_DISCARDS = ("cleared", "session_ended")


def errands(diary: Diary) -> list[Callable[[], None]]:
    """Return what may happen."""
    serial = iter(range(1, 10**12))

    def work() -> None:
        message = diary.publish(_JOBS, [_QUEUE])
        _take(diary, message, 0)

    def write() -> None:
        n = diary.dice.randrange(1000)
        session, subject, other = (Receiver(f"pat{n}/{k}", Sort.KEPT) for k in (1, 0, 2))
        message = diary.publish(_MAIL, [session])
        diary.hand(session, [message])
        diary.later(diary.latency(), _come_back, diary, message, session, subject, other)

    def ask() -> None:
        dice = diary.dice
        (end,) = dice.choices([*_ENDS], [*_ENDS.values()])
        requester = Receiver(f"anonymous/-{1 + dice.randrange(1000)}", Sort.PLAIN)
        responder = Receiver(f"meter/{1 + dice.randrange(9)}", Sort.KEPT)
        request = {"name": requester.name, "channel": _ASK}
        diary.change(Kind.REQUEST, "asked", number=_TIMEOUT_MS, **request)
        message = diary.publish(_ASK, [] if end == "no_responders" else [responder])
        if end == "no_responders":
            diary.change(Kind.REQUEST, end, number=50, **request)
            return
        diary.hand(responder, [message])
        back = f"/ret/{requester.name}/{next(serial)}"
        took_us = _TIMEOUT_MS * 1000 if end == "timeout" else diary.latency()
        diary.later(took_us, _answer, diary, message, requester, responder, back, end, took_us)

    def discard() -> None:
        receiver = Receiver(f"lazy{diary.dice.randrange(1000)}/1", Sort.KEPT)
        why = diary.dice.choice(_DISCARDS)
        for message in [diary.publish(_MAIL, [receiver]) for _ in range(3)]:
            diary.end(Kind.DISCARDED, receiver, message, why)

    def misspell() -> None:
        refused = 1 + diary.dice.randrange(9)
        diary.change(Kind.PUBLISHES_REFUSED, "publish_denied", channel=_MAIL, number=refused)

    def delay() -> None:
        diary.later(diary.latency(), _publish_late, diary, diary.delay(_MAIL))

    return [work, ask, write, ask, work, discard, misspell, delay]


def _take(diary: Diary, message: Message, attempts: int) -> None:
    """Let the next worker take the work."""
    worker = _WORKERS[attempts]
    diary.move(message, _QUEUE, worker, attempts)
    diary.hand(worker, [message], attempts + 1)
    diary.later(diary.latency(), _finish, diary, message, worker, attempts + 1)


def _finish(diary: Diary, message: Message, worker: Receiver, attempts: int) -> None:
    """Let the worker finish the work, or refuse it for others; refused by all, it is dead."""
    if diary.dice.random() >= _REFUSED:
        diary.ack(worker, [message])
        return
    code = diary.dice.choice(REFUSALS)
    diary.refuse(worker, message, code, attempts)
    diary.in_flight -= 1
    diary.move(message, worker, _QUEUE, attempts)
    if attempts < len(_WORKERS):
        _take(diary, message, attempts)
    else:
        diary.end(Kind.DEAD, _QUEUE, message, code, attempts)


def _publish_late(diary: Diary, message: Message) -> None:
    """Publish a message whose delay is over."""
    diary.happen(Kind.DUE, _DELAYS, [message])
    reader = Receiver(f"late{diary.dice.randrange(1000)}/1", Sort.PLAIN)
    diary.happen(Kind.WRITTEN, reader, [diary.publish(_MAIL, [reader])], 1)


def _come_back(
    diary: Diary, message: Message, session: Receiver, subject: Receiver, other: Receiver
) -> None:
    """Let a message return from a session that ends, and go to the next one of its subject."""
    diary.in_flight -= 1
    diary.change(Kind.SESSION, "left", name=session.name)
    diary.move(message, session, subject, 1)
    diary.change(Kind.SESSION, "opened", name=other.name)
    diary.move(message, subject, other, 1)
    diary.hand(other, [message], 2)
    diary.later(diary.latency(), diary.ack, other, [message])


def _answer(
    diary: Diary,
    message: Message,
    requester: Receiver,
    responder: Receiver,
    back: str,
    end: str,
    took_us: int,
) -> None:
    """Let a request end; a refused one is a dead letter, which may be replayed."""
    if end == "refused":
        diary.refuse(responder, message, REFUSALS[0], 1)
        diary.in_flight -= 1
        diary.end(Kind.DEAD, responder, message, REFUSALS[0], 1)
    else:
        diary.ack(responder, [message])
    if end == "answered":
        diary.change(Kind.REPLY, "accepted", name=responder.name, channel=_ASK, number=took_us)
        diary.happen(Kind.WRITTEN, requester, [diary.publish(back, [requester])], 1)
    elif end == "timeout":
        diary.change(Kind.REPLY, "late", name=responder.name, channel=_ASK, number=took_us)
    diary.change(Kind.REQUEST, end, name=requester.name, channel=_ASK, number=took_us)
