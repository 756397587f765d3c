"""NaN and infinity from extensions: an error of the extension, and never null for a client."""

from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.bayeux.extending.base import ServerExtension, SessionExtension
from holdfast.bayeux.session import Session
from holdfast.bayeux.state.service_channels import ServiceCall
from holdfast.delivery.basics.json_text import NoNumber, to_strict_json
from holdfast.delivery.messages.batch import Batch
from holdfast.extensions.ack import Ack
from tests.unit.bayeux.harness import Json, Server

NAN, INFINITY = float("nan"), float("inf")
FAULT = "500::server_fault"


@dataclass
class Reading:
    celsius: float


@pytest.mark.parametrize(
    "value",
    [
        NAN,
        INFINITY,
        -INFINITY,
        [1, NAN],
        {"a": {"b": [None, {"c": (NAN,)}]}},
        [[[[[[[NAN]]]]]]],
        [NAN, 2**70],
        Reading(NAN),
        {"reading": Reading(NAN)},
    ],
)
def test_nan_and_infinity_raise_an_error_instead_of_becoming_null(value: object) -> None:
    with pytest.raises(ValueError):
        to_strict_json(value)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=True)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@pytest.mark.slow
@given(JSON)
def test_a_value_is_written_unchanged_or_not_at_all(value: object) -> None:
    try:
        text = to_strict_json(value)
    except ValueError:
        return
    assert orjson.loads(text) == value


def test_none_is_written_as_null() -> None:
    assert to_strict_json([None, "null", 1.5, Reading(1.0)]) == b'[null,"null",1.5,{"celsius":1.0}]'


class Meter(ServerExtension, SessionExtension):
    """Puts NaN into one place."""

    def __init__(self, place: str) -> None:
        self._place = place

    def negotiate(
        self, session: Session, handshake: Json, reply: Json, now: float
    ) -> SessionExtension | Awaitable[SessionExtension | None] | None:
        if self._place == "handshake" and "meter" in (handshake.get("ext") or {}):
            reply["ext"] = {"meter": NAN}
        return self if "meter" in (handshake.get("ext") or {}) else None

    def incoming(self, session: Session, message: Json, now: float) -> bool:
        if self._place == "incoming" and message["channel"] == "/a":
            message["data"]["load"] = NAN
        return True

    def outgoing(
        self,
        session: Session,
        reply: Json,
        asked: Mapping[str, Any],
        now: float,
        *,
        batch: Batch | None,
    ) -> None:
        if self._place == "outgoing" and reply["channel"] == "/a":
            reply["ext"] = {"meter": NAN}

    def event(self, event: Json) -> None:
        if self._place == "event" and event["channel"] == "/a":
            event["data"]["load"] = NAN


@pytest.mark.parametrize("place", ["incoming", "event", "outgoing"])
def test_a_message_to_which_an_extension_adds_nan_is_refused_and_the_extension_logged(
    place: str, caplog: pytest.LogCaptureFixture
) -> None:
    server = Server(partial(Ack, announces_batch=False), Meter(place))
    client, receiver = server.client(ext={"meter": True, "ack": True}), server.connected()
    receiver.subscribe("/a")
    held = receiver.connect()
    reply = client.publish("/a", {"load": 1.0}).reply
    assert reply["error"] == FAULT
    assert "Meter" in caplog.text
    assert b"null" not in orjson.dumps(reply)
    server.turn()
    if place != "outgoing":
        assert held.is_held
    assert client.publish("/b", None).reply["successful"]
    assert server.balances()


def test_a_handshake_to_whose_reply_an_extension_adds_nan_is_refused(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = Server(Meter("handshake"))
    assert server.guest().handshake(ext={"meter": True}).reply["error"] == FAULT
    assert "Meter put NaN or infinity into the reply" in caplog.text
    assert len(server.bayeux.state.sessions) == 0


def test_a_service_that_answers_with_nan_fails(caplog: pytest.LogCaptureFixture) -> None:
    server = Server()

    def serve(call: ServiceCall) -> None:
        call.answer({"load": NAN})

    server.bayeux.state.services.add("/service/load", serve)
    client = server.client()
    asked = client.publish("/service/load", {})
    assert asked.reply["error"] == FAULT
    assert asked.events == []
    assert "NaN and infinity have no form in JSON" in caplog.text


def test_a_publish_of_nan_by_the_server_raises_an_error() -> None:
    server = Server()
    with pytest.raises(NoNumber):
        server.for_extensions.publish("/a", {"load": NAN})
