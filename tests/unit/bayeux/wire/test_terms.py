"""The options in `ext.delivery` of a handshake, and the terms that they make."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.bayeux.wire.terms import Terms, TermsInvalid

MOST = 2**31 - 1
LONGEST_MS = 10 * 365 * 24 * 3600 * 1000


def test_terms_without_options_are_the_defaults() -> None:
    terms = Terms.of(True)
    assert terms == Terms.of({}) == Terms()
    assert (terms.retries, terms.delay, terms.response_timeout) == (0, 60_000, 60_000)
    assert (terms.max_entries, terms.timeout, terms.max_sessions) == (-1, 86_400_000, MOST)
    assert not terms.is_named


def test_a_named_session_has_unlimited_retries_by_default() -> None:
    assert Terms.of({"session": "joe/1"}).retries == -1
    assert Terms.of({"session": "joe/1", "retries": 3}).retries == 3
    assert Terms.of({"session": "joe"}).retries == 0


@pytest.mark.parametrize(
    ("name", "subject", "number"),
    [
        ("joe/1", "joe", 1),
        ("client/joe/1", "joe", 1),
        ("client/joe/session/12", "joe", 12),
        ("joe", "joe", 0),
        ("client/joe", "joe", 0),
        ("joe.doe@example.com/999999999", "joe.doe@example.com", 999_999_999),
        ({"name": "joe/2"}, "joe", 2),
    ],
)
def test_a_session_name_may_have_several_forms(name: Any, subject: str, number: int) -> None:
    terms = Terms.of({"session": name})
    assert (terms.subject, terms.number) == (subject, number)
    assert terms.is_named == (number > 0)
    assert terms.key == f"{subject}/{number}"


@pytest.mark.parametrize(
    "name",
    [
        "",
        "/1",
        "joe/",
        "joe/0",
        "joe/-1",
        "joe/01",
        "joe/1/2",
        "j",
        "-joe/1",
        "jo e/1",
        "joe/*",
        "joe{x}/1",
        "joe\n/1",
        "j" * 64 + "/1",
        "joe/1234567890",
        7,
        [],
        True,
        {},
        {"name": 7},
    ],
)
def test_an_invalid_session_name_is_refused(name: Any) -> None:
    with pytest.raises(TermsInvalid, match=r"^session \([^,:]* joe/1\)$"):
        Terms.of({"session": name})


@pytest.mark.parametrize(
    ("option", "least", "most"),
    [
        ("retries", -1, MOST),
        ("delay", 0, LONGEST_MS),
        ("responseTimeout", 0, LONGEST_MS),
        ("maxEntries", -1, MOST),
    ],
)
def test_a_number_outside_its_limits_is_refused(option: str, least: int, most: int) -> None:
    for value in (least, most):
        assert Terms.of({option: value}).to_json()[option] == value
    for other in (least - 1, most + 1, 1.5, "1", True, None):
        with pytest.raises(TermsInvalid, match=f"^{option}$"):
            Terms.of({option: other})


@pytest.mark.parametrize("option", ["timeout", "maxSessions", "clearSessions"])
def test_an_invalid_option_of_a_session_is_refused(option: str) -> None:
    with pytest.raises(TermsInvalid, match=f"^{option}$"):
        Terms.of({"session": {"name": "joe/1", option: -1}})


@pytest.mark.parametrize("option", ["oneway", "ptp", "dispatcherActive"])
def test_a_flag_that_is_not_a_boolean_is_refused(option: str) -> None:
    for value in (1, "true", None):
        with pytest.raises(TermsInvalid, match=f"^{option}$"):
            Terms.of({option: value})


def test_dispatcher_active_is_none_unless_the_client_sets_it() -> None:
    asked = [{}, {"dispatcherActive": True}, {"dispatcherActive": False}]
    assert [Terms.of(each).dispatcher_active for each in asked] == [None, True, False]


@pytest.mark.parametrize("secret", [7, "x" * 257, ["x"]])
def test_a_secret_is_a_text_of_up_to_256_characters(secret: Any) -> None:
    assert Terms.of({"secret": "x" * 256}).secret == "x" * 256
    with pytest.raises(TermsInvalid, match=r"^secret$"):
        Terms.of({"secret": secret})


@pytest.mark.parametrize(
    ("queue", "named"),
    [
        ("long", "queue"),
        ({"maxEntries": 0}, "maxEntries"),
        ({"maxBytes": 0}, "maxBytes"),
        ({"maxBytes": MOST + 1}, "maxBytes"),
    ],
)
def test_an_invalid_limit_of_the_queue_is_refused(queue: Any, named: str) -> None:
    assert Terms.of({"queue": {"maxEntries": 1}}).queue == {"maxEntries": 1}
    with pytest.raises(TermsInvalid, match=f"^{named}$"):
        Terms.of({"queue": queue})


@pytest.mark.parametrize("asked", [None, False, 1, "yes", [True]])
def test_an_ext_delivery_that_is_neither_true_nor_an_object_is_refused(asked: Any) -> None:
    with pytest.raises(TermsInvalid, match=r"^delivery$"):
        Terms.of(asked)


def test_the_policy_of_the_dispatcher_is_in_seconds() -> None:
    policy = Terms.of({"retries": 2, "delay": 1500}).policy
    assert (policy.retries, policy.delay_s) == (2, 1.5)


@pytest.mark.slow
@given(
    st.fixed_dictionaries(
        {},
        optional={
            "retries": st.integers(-1, 9),
            "delay": st.integers(0, 9),
            "dispatcherActive": st.booleans(),
            "oneway": st.booleans(),
            "maxEntries": st.integers(-1, 9),
            "onUserException": st.sampled_from(["continue", "dead"]),
            "secret": st.none() | st.text(max_size=9),
            "ptp": st.booleans(),
            "queue": st.fixed_dictionaries({}, optional={"maxBytes": st.integers(1, 9)}),
            "session": st.sampled_from(["joe", "joe/1"])
            | st.fixed_dictionaries(
                {"name": st.just("joe/2")},
                optional={"timeout": st.integers(0, 9), "clearSessions": st.booleans()},
            ),
        },
    )
)
def test_terms_can_be_stored_and_read_except_for_the_options_of_one_handshake(
    asked: dict[str, Any],
) -> None:
    terms = Terms.of(asked)
    again = Terms.of(terms.to_json())
    assert again == replace(terms, dispatcher_active=None, clear_sessions=False)
