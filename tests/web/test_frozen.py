"""A server that was frozen does not expire sessions for that time."""

import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.abuse.attacker import Person, SocketPerson
from tests.web.programs import Program, program

INTERVAL_S = 3.2
FROZEN_S = 4.5

pytestmark = pytest.mark.slow


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Program]:
    limits = ["--max-interval", str(round(INTERVAL_S * 1000))]
    with program("--port", "0", *limits, home=tmp_path) as running:
        yield running


@contextmanager
def frozen(server: Program) -> Iterator[None]:
    server.process.send_signal(signal.SIGSTOP)
    yield
    time.sleep(FROZEN_S)
    server.process.send_signal(signal.SIGCONT)


def last_reply(person: Person | SocketPerson) -> dict[str, Any]:
    messages = person.hear() if isinstance(person, SocketPerson) else person.answer().messages()
    return messages[-1]


def test_a_server_that_was_frozen_expires_no_session_for_that_time(
    server: Program,
) -> None:
    url = server.place().rpartition("/")[0]
    with ExitStack() as stack:
        silent = stack.enter_context(Person(url))
        asking: list[Person | SocketPerson] = [
            *(stack.enter_context(Person(url)) for _ in range(5)),
            *(stack.enter_context(SocketPerson(url)) for _ in range(5)),
        ]
        for person in (silent, *asking):
            person.ask(person.connect_message())
        with frozen(server):
            for person in asking:
                person.say(person.connect_message(advice={"timeout": 0}))
        for person in asking:
            assert last_reply(person)["successful"] is True, "what it asked was in the socket"
        time.sleep(0.2)
        silent.say(silent.connect_message(advice={"timeout": 0}))
        assert last_reply(silent)["successful"] is True, "it has the rest of its interval"
