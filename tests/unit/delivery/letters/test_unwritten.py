"""Dead letters that are made some time after their messages died."""

from holdfast.delivery.basics.error_codes import UPDATE_ERROR
from holdfast.delivery.letters.unwritten import DeadEntry, Death
from holdfast.delivery.messages.entries import Entry
from holdfast.delivery.messages.message import Message
from holdfast.delivery.messages.trails import Attempt

DEATH = Death("client/joe/1", UPDATE_ERROR, "no such order", {"retries": 2})


def entry() -> Entry:
    entry = Entry(Message(b'{"data":1}', id=7, channel="/a"), seq=3, attempts=2)
    entry.redelivered = 1
    entry.trail = (Attempt(n=1, time=1000, outcome="refused"),)
    return entry


def test_a_letter_made_later_shows_its_entry_as_it_was_when_it_died() -> None:
    died = entry()
    dead = DeadEntry(died, DEATH, 9)
    before = dead.letter()
    died.attempts, died.redelivered, died.trail = 5, 4, ()
    assert dead.letter() == before
    assert (before.id, before.attempt_count, before.redelivered) == ("9", 2, 1)
    assert [attempt.n for attempt in before.attempts] == [1]


def test_a_letter_takes_receiver_code_reason_and_terms_from_its_death() -> None:
    letter = DeadEntry(entry(), DEATH, 9).letter()
    assert (letter.receiver, letter.code) == ("client/joe/1", "user.update.error")
    assert letter.reason == "The receiver failed to process the message: no such order"
    assert (letter.text, letter.policy) == ("no such order", {"retries": 2})


def test_a_dead_entry_has_the_message_id_and_the_size_of_its_letter() -> None:
    dead = DeadEntry(entry(), DEATH, 9)
    assert (dead.message, dead.size) == (dead.letter().message, dead.letter().size) == (7, 10)
