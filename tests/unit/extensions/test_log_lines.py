"""Refusals, queue holds and dead letters in the log, in a limited number of lines."""

import logging

import pytest

from holdfast.delivery.basics.notices import MOST, WINDOW_S
from tests.unit.bayeux.harness import server_of
from tests.unit.extensions.delivering import HOLDBACK, connect, no, publish, receiver

ERROR = "user.update.error"


@pytest.fixture(autouse=True)
def _at_the_usual_level(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)


def test_a_refusal_and_its_letter_are_logged_with_the_name_of_the_session(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = server_of()
    client = receiver(server)
    publish(server, "secret")
    (event,) = connect(client).events
    connect(client, no(event, ERROR, "secret"))
    key = client.session.key
    assert caplog.messages == [
        f"session {key} refused a message: {ERROR}",
        f"a message for session {key} is a dead letter: {ERROR}",
    ]


def test_a_holdback_its_end_and_the_hold_of_an_operator_are_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = server_of()
    client = receiver(server, session="joe/1")
    server.turn()
    publish(server, 1)
    server.turn()
    (event,) = connect(client).events
    connect(client, no(event, HOLDBACK))
    server.bayeux.life.resume(client.session, server.now)
    server.bayeux.life.hold_back(client.session, "secret", who="operator/ann", now=server.now)
    assert caplog.messages == [
        "session joe/1 is held back by itself",
        "session joe/1 is resumed by operator",
        "session joe/1 is held back by operator/ann",
    ]


def test_a_session_that_is_given_up_is_logged_in_one_line_for_each_kind_of_event(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = server_of()
    key = receiver(server).session.key
    publish(server, *range(100))
    server.advance(11.0)
    code = "communication.noConnection"
    assert caplog.messages == [
        f"a delivery to session {key} failed: {code}",
        f"a message for session {key} is a dead letter: {code}, 100 at once",
        f"session {key} was ended: {code}",
    ]


@pytest.mark.slow
def test_a_receiver_that_refuses_everything_causes_a_limited_number_of_log_lines(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = server_of()
    client = receiver(server)
    seconds = 100
    for _ in range(seconds):
        publish(server, *range(20))
        connect(client, *(no(event, ERROR) for event in connect(client).events))
        server.advance(1.0)
    server.stop()
    # A first line and a sum for refusals and letters each, in each window.
    assert len(caplog.messages) <= 4 * (seconds / WINDOW_S + 1)
    refused = f"session {client.session.key} refused a message: {ERROR}"
    told = [line for line in caplog.messages if line.startswith(refused)]
    more = sum(int(line.split(", ")[1].split()[0]) for line in told if ", " in line)
    assert more + sum(line == refused for line in told) == seconds * 20


@pytest.mark.slow
def test_many_sessions_that_are_given_up_cause_a_limited_number_of_log_lines(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = server_of()
    for _ in range(3 * MOST):
        receiver(server)
    publish(server, 1)
    server.advance(30.0)
    kinds = 3
    assert len(caplog.messages) <= kinds * (MOST + 1)
    assert any("(others)" in line for line in caplog.messages)
