"""Every earlier finding again: each gets the expected answer, and other clients notice nothing.

In the order of their names, these tests are the first of a fuzz run.
"""

from collections.abc import Callable, Iterable

import orjson
import pytest

from tests.abuse.attacker import CLOSE, TEXT, SocketPerson, frame, request
from tests.abuse.target import Target
from tests.fuzz.corpus.administration import ADMINISTRATION, TOKEN
from tests.fuzz.corpus.finding import CLIENT, MALFORMED, TOO_LARGE, TOO_MANY, Finding
from tests.fuzz.corpus.frames import FRAMES
from tests.fuzz.corpus.messages import MESSAGES
from tests.fuzz.corpus.requests import REQUESTS
from tests.fuzz.volley import check_log

TERMS = {"ack": True, "delivery": True}
# The close code of a socket for each status that a request would get.
CLOSE_CODES = {"400": 1007, "413": 1009}
OPEN = 0


def replay(
    target: Target, findings: Iterable[Finding], answer: Callable[[Finding], str | int]
) -> None:
    """Replay all findings, then fail with those whose answer was unexpected."""
    with target.bystander():
        answers = [(finding, answer(finding)) for finding in findings]
    check_log(target, [finding.sent for finding, _ in answers])
    wrong = [
        f"{finding.why}: {got!r}, not {finding.expected!r}, after {finding.sent[:300]!r}"
        for finding, got in answers
        if got != finding.expected
    ]
    assert not wrong, "\n".join(wrong)


def last_error(messages: list[dict[str, object]]) -> str:
    """The error of the last reply; events for the session do not count."""
    replies = [message for message in messages if "successful" in message]
    error = str(replies[-1].get("error", ""))
    return MALFORMED if error.endswith(":request_malformed") else error


def test_past_messages_over_http(either_front_end: Target) -> None:
    def answer(finding: Finding) -> str:
        with either_front_end.person(ext=TERMS) as person:
            person.subscribe("/a")
            text = finding.sent.replace(CLIENT.encode(), person.client_id.encode())
            person.send_until_refused(request(text, person.headers))
            heard = person.answer()
            assert heard.status in (200, 400, 413), finding
            if heard.status == 200:
                person.ask(person.message("/meta/disconnect"))
            return last_error(heard.messages())

    replay(either_front_end, MESSAGES, answer)


def test_past_messages_over_sockets(target: Target) -> None:
    def answer(finding: Finding) -> str | int:
        with SocketPerson(target.url, ext=TERMS) as person:
            person.ask(person.message("/meta/subscribe", subscription="/a"))
            text = finding.sent.replace(CLIENT.encode(), person.client_id.encode())
            person.send_frame(text)
            replies: list[dict[str, object]] = []
            while not (replies and "successful" in replies[-1]):
                opcode, payload = person.read_frame()
                if opcode == CLOSE:
                    return f"closed with {int.from_bytes(payload[:2], 'big')}"
                replies = orjson.loads(payload)
            return last_error(replies)

    def over_a_socket(finding: Finding) -> Finding:
        # A request that is refused as a whole closes its socket.
        if finding.expected in (MALFORMED, TOO_LARGE, TOO_MANY):
            code = CLOSE_CODES[str(finding.expected)[:3]]
            return Finding(finding.why, finding.sent, f"closed with {code}")
        return finding

    replay(target, map(over_a_socket, MESSAGES), answer)


def test_past_requests_over_http(either_front_end: Target) -> None:
    def answer(finding: Finding) -> int:
        with either_front_end.wire() as wire:
            wire.send_until_refused(finding.sent)
            return wire.answer().status

    replay(either_front_end, REQUESTS, answer)


def test_past_frames_over_sockets(either_front_end: Target) -> None:
    def answer(finding: Finding) -> int:
        with either_front_end.socket_person() as person:
            person.send_until_refused(finding.sent)
            return outcome(person)

    replay(either_front_end, FRAMES, answer)


def outcome(person: SocketPerson) -> int:
    """The code with which the socket is closed; 0 if its next message is answered."""
    person.send_until_refused(frame(orjson.dumps([person.message("/a", data=1, id="last")])))
    while True:
        opcode, payload = person.read_frame()
        if opcode == CLOSE:
            return int.from_bytes(payload[:2], "big")
        if opcode == TEXT and orjson.loads(payload)[-1].get("id") == "last":
            return OPEN


def test_past_requests_to_the_administration(target: Target, token: str) -> None:
    def answer(finding: Finding) -> int:
        with target.wire(source=next(addresses)) as wire:
            wire.send_until_refused(finding.sent.replace(TOKEN.encode(), token.encode()))
            return wire.answer().status

    # One address may send only a few wrong tokens.
    addresses = iter([f"127.0.1.{number}" for number in range(1, 250)])
    replay(target, ADMINISTRATION, answer)


@pytest.mark.parametrize("findings", [MESSAGES, REQUESTS, FRAMES, ADMINISTRATION])
def test_the_corpus_has_no_duplicates(findings: list[Finding]) -> None:
    assert len({finding.sent for finding in findings}) == len(findings)
