"""What every session and every message has.

A new feature must not add to these lists. A server has hundreds of thousands of sessions and
messages, and each pays for every slot in memory, whether the feature is used or not. A slot also
tempts other rooms to read what only the feature understands, and then each of them has to know it.
So a feature defines a class for what it knows of a session, a queue or a message, in its own room,
and keeps one object of it in `records`: see `app/delivery/basics/feature_records.py`. If the core
must tell or ask the feature something, the class overrides a method of `MessageRecord` or
`QueueRecord`.

A slot belongs here if every session or message has its value, and if the way of every message or of
every connect reads it.
"""

import ast
from pathlib import Path

import pytest

from tests.pages import ROOT

# By module and class: the slots, by what they are for.
ALLOWED = {
    ("bayeux/session.py", "Session"): {
        "who its client is, and what it may agree on": [
            *("client_id", "identity", "caller", "terms"),
            *("timeout_s", "interval_s", "is_resumed", "created"),
        ],
        "how messages reach it": [
            *("held_connect", "pipe", "carrier", "unfinished"),
            *("deliver_only", "broadcast_to_publisher", "pauses", "drops_outdated", "decorators"),
        ],
        "when something of it is due": [
            *("deadline", "ends_at", "lazy_due", "quiet_until", "rest_interval_s", "is_advised"),
        ],
        "what extensions of users keep, and the hooks that every message passes": [
            *("attributes", "extensions"),
        ],
    },
    ("bayeux/wire/identity.py", "Identity"): {
        "its browser": [
            *("browser", "browser_of_socket", "needs_cookie", "is_of_page"),
            *("newcomer_since", "first_connect"),
        ],
        "its login, which every request must prove": ["login", "grants", "proved_by", "proofs"],
        "its role in the administration": ["role", "warrant"],
    },
    ("delivery/messages/message.py", "Message"): {
        "what it is": ["id", "channel", "sender", "priority", "properties", "generation"],
        "whom it is for": ["addressed", "is_direct", "is_initial"],
        "how long it may wait, and in which order": [
            *("linger_s", "life_ms", "expires_ms", "is_late"),
        ],
        "where it is kept": ["is_durable", "keeping"],
        "bytes that its receivers share": ["event_start", "journal_note"],
        "what single features know of it": ["records"],
    },
    ("delivery/queues/receivers.py", "Receiver"): {
        "who it is": ["key", "name", "number", "subject", "transport"],
        "what it gets": ["queue", "dispatcher", "subscriptions", "is_durable"],
        "its state, and what follows from it": [
            *("state", "takes_messages", "is_gone", "has_left", "is_away", "is_ready"),
        ],
        "what single features know of it": ["records"],
    },
    ("delivery/queues/in_flight.py", "InFlight"): {
        "what it agreed on with its client": [
            *("settling", "gives_verdicts", "response_timeout_s"),
        ],
        "its entries": [
            *("_fresh", "_handed", "returned", "expiring", "count", "size"),
            *("has_counted", "has_former", "has_pending", "is_mixed"),
        ],
        "their numbers, and which of them arrived": [
            *("batch", "seq", "_last_seq", "_heard", "_former_seq", "is_restored"),
        ],
        "how much it hands over after failures": ["window", "_repeats"],
        "the counters of the server": ["_counters"],
        "what single features know of it": ["records"],
    },
    ("delivery/queues/dispatcher.py", "Dispatcher"): {
        "whether its queue flows": ["state", "since", "is_calm", "hold_record", "hold_ends_at"],
        "its next attempt": ["policy", "attempt", "deadline", "_awaited", "_has_refused"],
        "what operators see": ["acknowledged"],
    },
}


def slots_in(source: str, name: str) -> list[str]:
    """The slots that the class of this name defines itself."""
    (found,) = (
        each
        for each in ast.walk(ast.parse(source))
        if isinstance(each, ast.ClassDef) and each.name == name
    )
    (slots,) = (
        each.value
        for each in found.body
        if isinstance(each, ast.Assign) and ast.unparse(each.targets[0]) == "__slots__"
    )
    return list(ast.literal_eval(slots))


@pytest.mark.parametrize(("module", "name"), ALLOWED, ids=lambda each: Path(each).stem)
def test_what_sessions_and_messages_are_made_of_has_no_slots_for_features(
    module: str, name: str
) -> None:
    found = slots_in((ROOT / "app" / module).read_text("utf-8"), name)
    allowed = [slot for slots in ALLOWED[module, name].values() for slot in slots]
    assert sorted(found) == sorted(allowed)


def test_slots_of_another_class_in_the_module_do_not_count() -> None:
    source = "class A:\n    __slots__ = ('a',)\nclass B:\n    __slots__ = ('b', 'c')\n"
    assert slots_in(source, "B") == ["b", "c"]
