"""Requests: in whichever order things happen, each is answered once, or ends."""

from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.delivery.basics.counters import Counters
from holdfast.delivery.messages.storing import PersistOutcome, RequestStep
from holdfast.delivery.ports.journal_port import NO_JOURNAL, DeliveryJournal
from holdfast.delivery.queues.queue import CallbackQueue, QueueLimits
from holdfast.delivery.queues.receivers import Receiver
from holdfast.delivery.requests.outstanding import Requests
from holdfast.delivery.requests.request import ReplyFault, ReplyMode, Request, RequestEnd

NAMES = ("ann/1", "bob/1", "cleo/1")


def person(name: str) -> Receiver:
    receiver = Receiver(CallbackQueue(QueueLimits(), Counters()), 1)
    receiver.go_by(name)
    return receiver


def tell_at_once(ended: Request[Receiver], step: RequestStep) -> None:
    step.known(PersistOutcome.KEPT)


def requests(
    announce_end: Callable[[Request[Receiver], RequestStep], None] = tell_at_once,
    journal: DeliveryJournal = NO_JOURNAL,
) -> Requests[Receiver]:
    return Requests(
        journal,
        begin=lambda work: None,
        save=lambda fields: None,
        announce_end=announce_end,
    )


@dataclass
class Model:
    """One request and who has spoken: nothing is indexed, nothing is cleared up."""

    may: set[str]
    has_spoken: set[str] = field(default_factory=set)
    replies: int = 0
    was_refused: bool = False
    end: RequestEnd | None = None

    def reply(self, name: str) -> ReplyFault | None:
        if name in self.has_spoken:
            return ReplyFault.DUPLICATE
        if name not in self.may:
            return ReplyFault.DENIED
        self.has_spoken.add(name)
        if self.end is not None:
            is_answered = self.end is RequestEnd.ANSWERED
            return ReplyFault.DUPLICATE if is_answered else ReplyFault.LATE
        self.replies += 1
        self.end = RequestEnd.ANSWERED
        return None

    def refuse(self, name: str) -> None:
        if name in self.may - self.has_spoken and self.end is None:
            self.was_refused = True
            self.has_spoken.add(name)
            self.look()

    def leave(self, name: str) -> None:
        if self.end is None:
            self.may.discard(name)
            self.look()

    def look(self) -> None:
        if self.end is None and self.may <= self.has_spoken:
            self.end = RequestEnd.REFUSED if self.was_refused else RequestEnd.NO_RESPONDERS

    def expire(self) -> None:
        if self.end is None:
            self.end = RequestEnd.TIMEOUT


STEPS = st.lists(
    st.tuples(st.sampled_from(["reply", "refuse", "leave", "expire"]), st.sampled_from(NAMES))
)


@pytest.mark.slow
@given(st.sets(st.sampled_from(NAMES), min_size=1), STEPS)
def test_a_request_is_answered_once_or_ends(
    granted: set[str], steps: list[tuple[str, str]]
) -> None:
    told: list[Request[Receiver]] = []

    def tell(ended: Request[Receiver], step: RequestStep) -> None:
        told.append(ended)
        step.known(PersistOutcome.KEPT)

    book = requests(tell)
    people = {name: person(name) for name in NAMES}
    request = asked(book)
    book.grant(request, sorted(granted))
    model = Model(set(granted))
    for step, name in steps:
        match step:
            case "reply":
                found, fault = book.accept("/ret/x/4000001", people[name])
                assert fault == model.reply(name)
                if fault is None and found is not None:
                    book.answered(found, people[name].key)
            case "refuse":
                if request.end is None:
                    book.lose(request, name, ("user.update.error", ""))
                model.refuse(name)
            case "leave":
                book.session_ended(people[name])
                model.leave(name)
            case _:
                book.tick(10.0)
                model.expire()
        while book.go_on(0.0):
            pass
        assert request.end == model.end
        assert request.replies == model.replies <= 1
    is_silent = model.end not in (None, RequestEnd.ANSWERED)
    assert len(told) == is_silent
    if model.end is not None:
        assert (book.outstanding, book.grants) == (0, 0)
        assert not book.outstanding_of(request.requester)


def asked(
    book: Requests[Receiver],
    mode: ReplyMode = ReplyMode.FIRST,
    address: str = "/ret/x/4000001",
    requester: Receiver | None = None,
) -> Request[Receiver]:
    """A request that is being asked."""
    request = Request(
        *(book, requester or person("dee/1")),
        channel="/a",
        reply_to=address,
        mode=mode,
        timeout_ms=5000,
        now=0.0,
        now_ms=0,
    )
    book.open(request)
    return request


def test_a_receiver_that_gets_a_request_after_its_end_may_not_reply() -> None:
    book = requests()
    request = asked(book)
    book.tick(1000.0)
    book.grant(request, ["ann/1"])
    assert book.accept(request.address, person("ann/1")) == (None, ReplyFault.DENIED)
    book.drop(request)
    assert request.end is RequestEnd.TIMEOUT


def test_a_request_is_forgotten_although_a_responder_ended_in_the_turn_of_its_answer() -> None:
    book = requests()
    book.remembered.most = 6
    request = asked(book)
    book.grant(request, ["ann/1", "bob/1"])
    book.session_ended(person("ann/1"))
    assert book.accept(request.address, person("bob/1")) == (request, None)
    book.answered(request, "bob/1")
    assert not book.go_on(0.0)
    book.remembered.most = 0
    next_one = asked(book, address="/ret/x/4000002")
    book.drop(next_one)
    assert book.accept(request.address, person("bob/1")) == (None, ReplyFault.DENIED)


@pytest.mark.interpreted
def test_requests_of_a_session_that_ends_are_ended_in_the_order_in_which_they_were_sent() -> None:
    ended: list[int] = []
    journal = SimpleNamespace(
        asked=lambda *_: None, request_ended=lambda _, __, ___, id: ended.append(id)
    )
    book = requests(journal=cast("DeliveryJournal", journal))
    dee = person("dee/1")
    for number in range(50):
        request = asked(book, address=f"/ret/x/{number}", requester=dee)
        request.id = number
        book.grant(request, [f"ann/{number % 2}"])
    book.session_ended(person("ann/0"))
    while book.go_on(0.0):
        pass
    book.session_ended(dee)
    assert ended == [*range(0, 50, 2), *range(1, 50, 2)]


@pytest.mark.slow
def test_ten_thousand_requests_end_in_several_parts() -> None:
    book = requests()
    for _ in range(10_000):
        request = Request(
            book,
            person("dee/1"),
            channel="/a",
            reply_to="/ret/x",
            mode=ReplyMode.FIRST,
            timeout_ms=1,
            now=0.0,
            now_ms=0,
        )
        request.address = f"/ret/x/{id(request)}"
        book.open(request)
        book.grant(request, ["ann/1"])
    book.tick(1000.0)
    assert book.ended[RequestEnd.TIMEOUT] == 2000
    book.session_ended(person("ann/1"))
    assert book.ended[RequestEnd.NO_RESPONDERS] == 0
    assert book.go_on(0.0)
    for _ in range(20_000):
        book.go_on(0.0)
    assert book.outstanding == 0
