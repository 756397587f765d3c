"""The table of failures, row by row, and the error handler that tries again."""

import pytest

from holdfast.client.errors import Refuse
from holdfast.delivery.basics.error_codes import CODES, ErrorCode, find, of_receiver
from holdfast.delivery.ports.error_handler import (
    ErrorHandler,
    Failure,
    ForMessage,
    ForRest,
    Reaction,
)
from holdfast.delivery.queues.dispatcher import (
    Dispatcher,
    DispatcherInput,
    DispatcherState,
    Policy,
    QueueHold,
)
from holdfast.delivery.settling.reactions import (
    CodeKind,
    DefaultErrorHandler,
    OnUserException,
    RetryThenDead,
    classify,
    stops,
)

CONTINUE = DefaultErrorHandler()
DEAD = DefaultErrorHandler(OnUserException.DEAD)

# What counts as authentication, and is no plain user.*.
AUTHENTICATION = "user.security.authentication"

# Columns: message, rest, dispatcher afterwards, held back, session, redelivered.
Row = tuple[str, str, str, bool, str, bool]
REFUSED: Row = ("dead letter", "flows", "ALIVE", False, "kept", False)
HELD: Row = ("stays", "stays", "ALIVE", True, "kept", True)
NOT_ALLOWED: Row = ("dead letter", "dead letters", "DEAD", False, "ended", False)
DONE_WITH: Row = ("dead letter", "dead letters", "DEAD", False, "kept", False)
POLLING: Row = ("stays", "stays", "POLLING", False, "kept", True)
GIVEN_UP: Row = ("dead letter", "dead letters", "DEAD", False, "ended", False)


def alive(retries: int = 0, *, delay_s: float = 60.0) -> Dispatcher:
    dispatcher = Dispatcher(Policy(retries, delay_s))
    dispatcher.contact(0.0)
    return dispatcher


def apply(reaction: Reaction, dispatcher: Dispatcher, now: float = 0.0) -> Dispatcher:
    """What the owner of a queue does about the dispatcher."""
    match reaction.input:
        case DispatcherInput.HOLD:
            dispatcher.hold_back(QueueHold("disk full", "joe/1", since=0))
        case DispatcherInput.REFUSAL:
            dispatcher.refused(now)
        case DispatcherInput.LOSS:
            dispatcher.lost(now)
        case DispatcherInput.GIVE_UP | DispatcherInput.END:
            dispatcher.end(reaction.input)
        case _:
            assert reaction.input is None
    if reaction.pause_s is not None:
        dispatcher.pause(now, reaction.pause_s)
    return dispatcher


def row(
    text: str,
    dispatcher: Dispatcher,
    handler: ErrorHandler = CONTINUE,
    *,
    by_client: bool = True,
) -> Row:
    """What the failure does to message, rest, dispatcher and session."""
    code = find(text)
    assert code is not None
    failure = Failure(code, "why", by_client=by_client)
    reaction = handler.react(failure, dispatcher, 0.0)
    apply(reaction, dispatcher)
    return (
        reaction.message.value,
        reaction.rest.value,
        dispatcher.state.name,
        dispatcher.hold_record is not None,
        "ended" if reaction.ends_session else "kept",
        reaction.counts_redelivered,
    )


def expected(text: str, handler: ErrorHandler, retries: int) -> Row:
    if text == "user.update.deadMessage":
        return REFUSED
    if text == "user.update.holdback":
        return HELD
    if text == AUTHENTICATION or text.startswith(AUTHENTICATION + "."):
        return NOT_ALLOWED
    if text.startswith("communication"):
        return GIVEN_UP if retries == 0 else POLLING
    return DONE_WITH if handler is DEAD else REFUSED


@pytest.mark.parametrize("handler", [CONTINUE, DEAD], ids=["continue", "dead"])
@pytest.mark.parametrize("retries", [0, 1, -1])
def test_every_error_code_has_the_reaction_of_the_table(
    handler: ErrorHandler, retries: int
) -> None:
    met = {text: row(text, alive(retries), handler) for text in CODES}
    assert met == {text: expected(text, handler, retries) for text in CODES}


@pytest.mark.parametrize("handler", [CONTINUE, DEAD], ids=["continue", "dead"])
@pytest.mark.parametrize("retries", [0, 1, -1])
def test_a_receivers_own_code_has_the_reaction_of_its_nearest_listed_parent(
    handler: ErrorHandler, retries: int
) -> None:
    parents = [text for text in CODES if text.startswith(("user", "communication"))]
    with_room = [text for text in parents if text.count(".") < 4]
    met = {text: row(f"{text}.of_ours", alive(retries), handler) for text in with_room}
    assert met == {text: row(text, alive(retries), handler) for text in with_room}
    assert row("user.paper.empty", alive(retries), handler) == row("user", alive(), handler)


def test_access_denied_by_a_receiver_is_a_refusal_and_no_failed_login() -> None:
    denied = "user.update.security.authentication.accessDenied"
    assert classify(CODES[denied]) is CodeKind.USER
    assert row(denied, alive()) == REFUSED


@pytest.mark.parametrize("text", ["internal.unknown", "resource.db.block", "legacy"])
def test_codes_that_receivers_cannot_give_are_of_the_family_user(text: str) -> None:
    assert classify(CODES[text]) is CodeKind.USER


@pytest.mark.parametrize(("retries", "row_"), [(0, GIVEN_UP), (1, POLLING), (-1, POLLING)])
def test_lost_contact_does_not_count_as_an_exception_of_the_receiver(
    retries: int, row_: Row
) -> None:
    assert row("communication.noConnection", alive(retries), by_client=False) == row_


@pytest.mark.parametrize(("retries", "row_"), [(0, GIVEN_UP), (1, POLLING), (-1, POLLING)])
def test_a_response_timeout_has_the_reaction_of_a_refusal(retries: int, row_: Row) -> None:
    dispatcher = alive(retries)
    assert row("communication.responseTimeout", dispatcher, by_client=False) == row_
    dispatcher.contact(0.1)
    assert not dispatcher.flows(0.1)


def test_a_receiver_without_a_delay_has_no_retries() -> None:
    assert row("communication.noConnection", alive(-1, delay_s=0.0)) == GIVEN_UP


def test_retries_are_used_up_one_by_one() -> None:
    dispatcher = alive(2)
    assert row("communication.noConnection", dispatcher) == POLLING
    dispatcher.due(0.4)
    assert row("communication.noConnection", dispatcher) == POLLING
    dispatcher.due(60.4)
    assert row("communication.noConnection", dispatcher) == GIVEN_UP


def test_several_refusals_of_one_batch_are_one_failure() -> None:
    dispatcher = alive(1)
    assert row("communication.noConnection", dispatcher) == POLLING
    assert row("communication.noConnection", dispatcher) == POLLING


@pytest.mark.parametrize("by_client", [True, False])
def test_a_queue_that_is_held_back_is_not_given_up(by_client: bool) -> None:
    dispatcher = alive(0)
    assert row("user.update.holdback", dispatcher) == HELD
    message, rest, state, held, session, *_ = row(
        "communication.noConnection", dispatcher, by_client=by_client
    )
    assert (message, rest, held, session) == ("stays", "stays", True, "kept")
    assert state != "DEAD"


def test_a_failure_of_a_dead_receiver_dead_letters_its_queue() -> None:
    dispatcher = alive(-1)
    dispatcher.end()
    assert row("communication.noConnection", dispatcher) == GIVEN_UP


def test_a_handler_does_not_change_the_dispatcher() -> None:
    for code in CODES.values():
        dispatcher = alive(1)
        CONTINUE.react(Failure(code, ""), dispatcher, 5.0)
        assert (dispatcher.state, dispatcher.attempt) == (DispatcherState.ALIVE, 0)
        assert (dispatcher.deadline, dispatcher.hold_record) == (None, None)


# Trying again


def retrying(attempts: int = 3, random: float = 1.0, **more: ErrorHandler) -> RetryThenDead:
    return RetryThenDead(attempts, 1.0, 10.0, lambda: random, **more)


def refused(attempts: int, code: str = "user.update.error") -> Failure:
    return Failure(CODES[code], "not today", attempts=attempts)


def test_a_refused_message_stays_and_its_queue_flows_after_a_pause() -> None:
    dispatcher = alive()
    reaction = retrying().react(refused(1), dispatcher, 5.0)
    assert (reaction.message, reaction.rest) == (ForMessage.STAYS, ForRest.STAYS)
    assert (reaction.ends_session, reaction.counts_redelivered) == (False, True)
    apply(reaction, dispatcher, 5.0)
    assert dispatcher.state is DispatcherState.ALIVE
    assert not dispatcher.flows(5.9)
    assert dispatcher.flows(6.0)


def test_a_refused_message_is_a_dead_letter_after_the_last_attempt() -> None:
    reactions = [retrying().react(refused(attempts), alive(), 0.0) for attempts in (1, 2, 3, 4)]
    stays, dead = ForMessage.STAYS, ForMessage.DEAD
    assert [reaction.message for reaction in reactions] == [stays, stays, dead, dead]
    assert reactions[2] == CONTINUE.react(refused(3), alive(), 0.0)


def test_pauses_double_up_to_the_longest() -> None:
    handler = retrying(attempts=10_000)
    pauses = [handler.react(refused(n), alive(), 0.0).pause_s for n in (1, 2, 3, 4, 5, 9_999)]
    assert pauses == [1.0, 2.0, 4.0, 8.0, 10.0, 10.0]


@pytest.mark.parametrize(("random", "pause_s"), [(0.0, 1.0), (0.5, 1.5), (1.0, 2.0)])
def test_the_pause_varies_with_the_random_number(random: float, pause_s: float) -> None:
    assert retrying(random=random).react(refused(2), alive(), 0.0).pause_s == pause_s


@pytest.mark.parametrize("otherwise", [CONTINUE, DEAD], ids=["continue", "dead"])
@pytest.mark.parametrize("retries", [0, 1])
def test_failures_other_than_refusals_get_the_reaction_of_the_other_handler(
    otherwise: ErrorHandler, retries: int
) -> None:
    handler = retrying(otherwise=otherwise)
    for code in CODES.values():
        failure, dispatcher = Failure(code, ""), alive(retries)
        if classify(code) is not CodeKind.USER:
            expected_reaction = otherwise.react(failure, dispatcher, 0.0)
            assert handler.react(failure, dispatcher, 0.0) == expected_reaction


def test_the_other_handler_decides_when_attempts_are_used_up() -> None:
    reaction = retrying(otherwise=DEAD).react(refused(3), alive(), 0.0)
    assert reaction == DEAD.react(refused(3), alive(), 0.0)


def test_a_code_outside_the_table_has_the_reaction_of_an_internal_error() -> None:
    unheard_of = ErrorCode("plugin.own", "plugin", "Made by a plug-in")
    assert CONTINUE.react(Failure(unheard_of, ""), alive(), 0.0) == CONTINUE.react(
        Failure(CODES["user.update.internalError"], ""), alive(), 0.0
    )


OWN_CODES = ["user.update.holdback.disk", "communication.later", "user.mine"]


@pytest.mark.parametrize("text", [each for each in CODES if of_receiver(each)] + OWN_CODES)
def test_clients_know_which_codes_let_later_messages_come_again(text: str) -> None:
    code = find(text)
    assert code is not None
    assert stops(code) == Refuse(text).returns_others
