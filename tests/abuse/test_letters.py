"""A client that refuses its own messages: dead letters take no more room than they may."""

from tests.abuse.attacker import MIB, Person
from tests.abuse.conftest import MakeTarget
from tests.abuse.target import Target

LIMITS = {"dead_letter_bytes": 4 * MIB, "dead_letter_share_bytes": MIB}
ROUNDS, BYTES = 24, MIB // 4


def refuser(target: Target, name: str, channel: str) -> Person:
    person = target.person(ext={"ack": True, "delivery": {"session": name}})
    person.connect(ext={"ack": 0}, advice={"timeout": 0})
    person.subscribe(channel)
    return person


def refuse(person: Person, channel: str, data: str, batch: int) -> int:
    """Publish to oneself and refuse the messages; return the number of the last batch."""
    person.publish(channel, data)
    *events, reply = person.connect(ext={"ack": batch}, advice={"timeout": 0}).messages()
    verdicts = [
        {"seq": event["ext"]["delivery"]["seq"], "errorCode": "user.update.error"}
        for event in events
    ]
    ext = {"ack": reply["ext"]["ack"], "delivery": {"verdicts": verdicts}}
    *_, reply = person.connect(ext=ext, advice={"timeout": 0}).messages()
    number: int = reply["ext"]["ack"]
    return number


def test_a_client_cannot_fill_the_store_with_letters_or_displace_those_of_others(
    target_with: MakeTarget,
) -> None:
    target = target_with(**LIMITS)
    with refuser(target, "ann/1", "/orders") as ann, refuser(target, "mallory/1", "/mine") as enemy:
        refuse(ann, "/orders", "real trouble", 0)
        batch = 0
        for _ in range(ROUNDS):
            batch = refuse(enemy, "/mine", "x" * BYTES, batch)
            assert target.metric("holdfast_dead_letters_bytes") < 1.2 * MIB
        # Letters beyond the share stay for a moment.
        target.until_metric("holdfast_dead_letters_bytes", MIB, at_most=True)
        dead = target.metric("holdfast_entries_settled_total", outcome="dead")
        not_kept = target.metric("holdfast_entries_discarded_total", reason="letters_full")
        assert dead + not_kept == ROUNDS + 1
        removed = dead - target.metric("holdfast_dead_letters")
        target.until_metric("holdfast_dead_letters_removed_total", removed)
        # Ann's came first, and would have been the first to go.
        assert target.metric("holdfast_dead_letters_removed_total", reason="share") == removed
        for person in (ann, enemy):
            person.ask(person.message("/meta/disconnect", ext={"delivery": {"end": True}}))
