"""Each destination gets what the reply says once, and in order, also if shards are killed."""

from collections import Counter
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import TIMES
from tests.unit.bayeux.harness import Asked, Client, Json
from tests.unit.bayeux.publish.addressing import forced, heard, named, reported, subscribed
from tests.unit.bayeux.publish.stage import ANYBODY, EVENTS, PEOPLE, Stage
from tests.unit.bayeux.publish.test_at_home import DURABLE, NEWS

# There is no client dora, and no session of eve, but messages may wait.
ABSENT = ("dora", "eve/1")
NAMES = st.lists(
    st.sampled_from(["ann", "bob/1", "carl", "ann/1", *ABSENT]), min_size=1, max_size=3
)
STEPS = st.one_of(
    st.tuples(st.just("publish"), ANYBODY, NAMES, st.booleans(), st.booleans()),
    st.tuples(st.just("say"), ANYBODY),
    *EVENTS,
)


class Sent(NamedTuple):
    """One publish: by whom, to whom, and the last request with it."""

    sender: str
    # Destinations; none for subscribers alone.
    to: list[Any]
    # Whether subscribers get it.
    is_shown: bool
    is_keyed: bool
    asked: Asked
    is_repeated: bool = False

    @property
    def reply(self) -> Json | None:
        """The reply, if there is one and the outcome is known."""
        if self.asked.is_held:
            return None
        [reply] = [each for each in self.asked.replies if not each["channel"].startswith("/meta")]
        return None if "unknown:" in reply.get("error", "") else reply


class Play(Stage):
    """They address each other, and repeat what has no outcome."""

    def __init__(self, channel: str) -> None:
        self._channel = channel
        super().__init__(ptp_create_session=True, channels=DURABLE)
        self.sent: list[Sent] = []

    def arrive(self, name: str) -> Client:
        return subscribed(self.world, name, self._channel)

    def publish(self, sender: str, names: list[str], is_shown: bool, is_keyed: bool) -> None:
        to = [forced(name) if name in ABSENT else name for name in dict.fromkeys(names)]
        asked = self._ask(sender, to, len(self.sent), is_shown, is_keyed)
        self.sent.append(Sent(sender, to, is_shown, is_keyed, asked))

    def say(self, sender: str) -> None:
        asked = self._ask(sender, [], len(self.sent), is_shown=True, is_keyed=False)
        self.sent.append(Sent(sender, [], True, False, asked))

    def _ask(
        self, sender: str, to: list[Any], number: int, is_shown: bool, is_keyed: bool
    ) -> Asked:
        qos: Json = {"key": str(number)} if is_keyed else {"priority": 5}
        if to:
            qos |= {"destinations": to, "subscribable": is_shown}
        client = self.clients[sender]
        asked = client.publish(self._channel, number, ext={"delivery": qos})
        client.server.turn()
        self.wait_for(sender, asked)
        self.hear_replies()
        return asked

    def repeat(self) -> None:
        for number, sent in enumerate(self.sent):
            if sent.is_keyed and sent.reply is None:
                asked = self._ask(sent.sender, sent.to, number, sent.is_shown, is_keyed=True)
                self.sent[number] = sent._replace(asked=asked, is_repeated=True)

    def check(self) -> None:
        self._check_created()
        for number in range(len(self.sent)):
            self._check(number)
        self._check_order()

    def _check_created(self) -> None:
        """The first client of a session that messages have created gets them."""
        got = Counter(heard(named(self.world, "eve/1")))
        for number, sent in enumerate(self.sent):
            reply = sent.reply
            is_told = reply is not None and bool(sent.to) and "ext" in reply
            reports = dict(reported(reply)) if reply is not None and is_told else {}
            is_queued = reports.get("client/eve/1") == "QUEUED"
            assert got[number] == is_queued or (reply is None and got[number] == 1)

    def _check(self, number: int) -> None:
        sent, reply = self.sent[number], self.sent[number].reply
        assert reply is not None or not sent.is_keyed
        got = Counter(name for name in PEOPLE for each in self.heard[name] if each == number)
        assert max(got.values(), default=0) <= 1
        if reply is None:
            # Without a key, the publisher does not repeat it: anybody may have it.
            return
        found = reported(reply) if sent.to and "ext" in reply else []
        reports = {name.removeprefix("client/"): state for name, state in found}
        is_shown = sent.is_shown and reply["successful"]
        for person in PEOPLE:
            subject = person.partition("/")[0]
            taken = [reports.get(name) == "OK" for name in (person, subject)]
            assert got[person] == (is_shown or any(taken))

    def _check_order(self) -> None:
        """What one publisher says to all is heard in its order."""
        for heard_here in self.heard.values():
            for sender in PEOPLE:
                numbers = [
                    each
                    for each in heard_here
                    if self.sent[each].sender == sender
                    and self.sent[each].is_shown
                    and not self.sent[each].is_repeated
                    # What is unknown may come late.
                    and self.sent[each].reply is not None
                ]
                assert numbers == sorted(numbers)


@pytest.mark.slow
@pytest.mark.parametrize("channel", ["/news", NEWS])
@given(st.lists(STEPS, max_size=40))
@settings(max_examples=50 * TIMES)
def test_every_destination_gets_what_the_reply_says_once(channel: str, steps: list[Any]) -> None:
    Play(channel).play(steps)
