"""What a dead letter says that is made some time after the message died."""

from holdfast.delivery.entries import Entry
from holdfast.delivery.error_codes import FAILED_OVER
from holdfast.delivery.messages import Message
from holdfast.delivery.trails import Attempt
from holdfast.delivery.unwritten_letters import DeadEntry, DeathCause

DEATH = DeathCause("client/joe/1", FAILED_OVER, "no such order", {"retries": 2})


def entry() -> Entry:
    entry = Entry(Message(b'{"data":1}', id=7, channel="/a"), seq=3, attempts=2)
    entry.redelivered = 1
    entry.trail = (Attempt(n=1, time=1000, outcome="refused"),)
    return entry


def test_a_letter_says_what_was_true_when_its_message_died_and_not_what_became_of_it_since() -> (
    None
):
    died = entry()
    dead = DeadEntry(died, DEATH, 9)
    before = dead.letter()
    died.attempts, died.redelivered, died.trail = 5, 4, ()
    assert dead.letter() == before
    assert (before.id, before.attempt_count, before.redelivered) == ("9", 2, 1)
    assert [attempt.n for attempt in before.attempts] == [1]


def test_a_letter_has_in_common_with_others_who_missed_it_and_why() -> None:
    letter = DeadEntry(entry(), DEATH, 9).letter()
    assert (letter.receiver, letter.code) == ("client/joe/1", "user.update.error")
    assert letter.reason == "The receiver failed to process the message: no such order"
    assert (letter.text, letter.policy) == ("no such order", {"retries": 2})


def test_which_message_is_dead_and_how_large_it_was_is_known_before_the_letter_is_made() -> None:
    dead = DeadEntry(entry(), DEATH, 9)
    assert (dead.message, dead.size) == (dead.letter().message, dead.letter().size) == (7, 10)
