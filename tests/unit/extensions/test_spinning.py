"""Whatever a receiver answers, it gets a message only a limited number of times."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.delivery.ports.error_handler import Failure, ForMessage, ForRest, Reaction
from holdfast.delivery.queues.dispatcher import Dispatcher
from holdfast.settings import ChannelSettings
from tests.unit.bayeux.harness import Json, server_of
from tests.unit.extensions.delivering import connect, no, ok, publish, receiver

PATIENT = ChannelSettings(attempts=1_000_000, backoff=0, longest_backoff=0)
SECONDS = 3
# How often the receiver asks in a tenth of a second.
ASKS = 6
# At most after 0.1, 0.2, 0.4, 0.8 s, then once a second, and what is in flight at the end.
MOST = 4 + SECONDS + 2

SAID = st.sampled_from(
    [
        ("communication.noConnection", {"delay": 0}),
        ("communication.timeout", {"delay": 1}),
        ("communication.noConnection", {}),
        ("user.update.error", {}),
        ("made.up", {}),
    ]
)


class Again:
    """What extensions may answer: try again, without a pause."""

    def react(self, failure: Failure, dispatcher: Dispatcher, now: float) -> Reaction:
        return Reaction(ForMessage.STAYS, ForRest.STAYS, counts_redelivered=True)


@pytest.mark.slow
@settings(deadline=None, max_examples=25)
@given(
    said=st.lists(SAID, min_size=1, max_size=5),
    ack=st.booleans(),
    waits=st.booleans(),
    has_handler=st.booleans(),
    company=st.booleans(),
)
def test_a_message_that_is_refused_again_and_again_is_handed_over_a_limited_number_of_times(
    said: list[tuple[str, Json]], ack: bool, waits: bool, has_handler: bool, company: bool
) -> None:
    server = server_of(channels={"/a": PATIENT})
    if has_handler:
        server.bayeux.state.error_handlers.add("/a", Again())
    client = receiver(server, ack=ack, retries=-1, delay=1, responseTimeout=100)
    publish(server, "spun")
    handed: Counter[str] = Counter()
    verdicts: list[Json] = []
    advice: Json = {} if waits else {"timeout": 0}
    asked = connect(client, ack=0 if ack else None)
    for turn in range(10 * SECONDS * ASKS):
        if turn % ASKS == 0:
            server.advance(0.1)
            if company:
                # Its success with others must not let the receiver have this one.
                publish(server, turn)
        if asked.is_held:
            continue
        for event in asked.events:
            if event["data"] == "spun":
                handed["spun"] += 1
                code, fields = said[handed["spun"] % len(said)]
                verdicts.append(no(event, code, **fields))
            else:
                verdicts.append(ok(event))
        asked = connect(client, *verdicts, advice=advice, ack=0 if ack else None)
        verdicts = []
    assert 1 <= handed["spun"] <= MOST
