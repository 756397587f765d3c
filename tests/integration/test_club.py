"""The example of docs/how-to/extensions.md does what the page says."""

from pathlib import Path

import pytest

from docs.examples.club import MESSAGES_PER_SECOND
from tests.integration.talker import Json, Talker
from tests.serving import Server, Servers


@pytest.fixture
def url(servers: Servers) -> str:
    return servers.with_settings({"extension": ["docs.examples.club:install"]}).url


def member(url: str, ticket: str) -> Talker:
    talker = Talker(url)
    assert talker.handshake(ext={"ticket": ticket})["successful"]
    return talker


def test_a_handshake_with_an_unknown_ticket_is_refused(url: str) -> None:
    reply = Talker(url).handshake(ext={"ticket": "t-0000"})
    assert reply["error"] == "403:no_ticket:handshake_denied"
    assert reply["advice"]["reconnect"] == "none"
    assert "clientId" not in reply


def test_a_handshake_reply_has_the_name_of_the_ticket(url: str) -> None:
    assert Talker(url).handshake(ext={"ticket": "t-1815"})["ext"]["name"] == "ada"


def test_a_member_cannot_claim_a_session_name_of_another(url: str) -> None:
    ext = {"ticket": "t-1906", "delivery": {"session": "ada/1"}}
    assert Talker(url).handshake(ext=ext)["error"] == "403:not_your_name:session_name_denied"
    ext = {"ticket": "t-1815", "delivery": {"session": "ada/1"}}
    assert Talker(url).handshake(ext=ext)["successful"]


@pytest.mark.slow
def test_a_member_is_still_known_after_a_restart(tmp_path: Path) -> None:
    settings = {"extension": ["docs.examples.club:install"], "data": str(tmp_path)}
    first = Server(settings)
    ada = Talker(first.url)
    ada.handshake(ext={"ticket": "t-1815", "ack": True, "delivery": {"session": "ada/1"}})
    assert first.stop() == 0
    second = Server(settings)
    try:
        ada.go_to(second.url)
        ada.send("/service/whoami", data={})
        assert [event["data"] for event in heard(ada)] == [{"name": "ada"}]
        assert ada.send("/announcements/today", data="still here")[-1]["successful"]
    finally:
        second.stop()


def test_a_remote_call_is_answered_with_the_name_of_its_caller(url: str) -> None:
    answer, reply = member(url, "t-1906").send("/service/whoami", id="7", data={})
    assert answer == {
        "channel": "/service/whoami",
        "id": "7",
        "data": {"name": "grace"},
        "successful": True,
    }
    assert reply == {"channel": "/service/whoami", "id": "7", "successful": True}


def test_only_officers_may_publish_announcements_and_all_members_may_receive_them(url: str) -> None:
    ada, grace = member(url, "t-1815"), member(url, "t-1906")
    assert grace.send("/meta/subscribe", subscription="/announcements/**")[0]["successful"]

    [refusal] = grace.send("/announcements/today", data="tea at five")
    assert refusal["error"] == "403:officers_only:publish_denied"
    assert ada.send("/announcements/today", data="tea at six")[0]["successful"]

    messages = [reply["data"] for reply in grace.connect() if "data" in reply]
    assert messages == ["tea at six"]


def heard(talker: Talker, *verdicts: Json) -> list[Json]:
    """The next events, after verdicts on earlier ones."""
    while True:
        replies = talker.connect(ext={"delivery": {"verdicts": list(verdicts)}})
        events = [reply for reply in replies if "data" in reply]
        if events:
            return events
        verdicts = ()


def refusal(event: Json, text: str) -> Json:
    seq = event["ext"]["delivery"]["seq"]
    return {"seq": seq, "errorCode": "user.update.error", "message": text}


def test_a_message_that_a_sleeping_member_refuses_is_redelivered_alone_before_others(
    url: str,
) -> None:
    ada, grace = member(url, "t-1815"), Talker(url)
    grace.handshake(ext={"ticket": "t-1906", "delivery": True})
    grace.send("/meta/subscribe", subscription="/announcements/**")
    for words in ("tea at five", "tea at six"):
        ada.send("/announcements/today", data=words)

    first, _ = heard(grace)
    # What failed is redelivered alone, ahead of the others.
    [again] = heard(grace, refusal(first, "asleep"))
    assert (again["data"], again["ext"]["delivery"]["redelivered"]) == ("tea at five", 1)
    [behind, *_] = heard(grace, refusal(again, "no tea for me"))
    assert behind["data"] == "tea at six"
    ada.send("/announcements/today", data="tea at seven")
    [new] = heard(grace, {"seq": behind["ext"]["delivery"]["seq"], "state": "OK"})
    assert new["data"] == "tea at seven"


def test_a_subscription_to_anything_but_rooms_and_announcements_is_refused(url: str) -> None:
    ada = member(url, "t-1815")
    assert ada.send("/meta/subscribe", subscription="/rooms/library")[0]["successful"]
    [refusal] = ada.send("/meta/subscribe", subscription="/**")
    assert refusal["error"] == "403:no_such_room:create_denied"


def test_messages_beyond_the_rate_limit_are_dropped(url: str) -> None:
    ada = member(url, "t-1815")
    replies = ada.send_all([{"channel": "/rooms/hall", "data": n} for n in range(12)])
    errors = [reply.get("error") for reply in replies]
    assert errors == [None] * MESSAGES_PER_SECOND + ["404::message_deleted"] * 2
