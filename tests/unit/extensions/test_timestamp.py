"""Everything that the server sends says when it was made."""

from holdfast.extensions.timestamp import Timestamp
from tests.unit.bayeux.harness import Server

MOMENT = 1_700_000_000_987
TEXT = "2023-11-14T22:13:20.98"


def test_replies_and_messages_carry_the_time_in_gmt() -> None:
    server = Server(Timestamp(lambda: MOMENT))
    client = server.guest()
    assert client.handshake().reply["timestamp"] == TEXT
    assert client.connect().reply["timestamp"] == TEXT
    client.subscribe("/a")
    answer = client.publish("/a", 1, timestamp="a lie")
    assert [element["timestamp"] for element in answer.elements] == [TEXT, TEXT]


def test_answers_of_services_carry_the_time_too() -> None:
    server = Server(Timestamp(lambda: MOMENT))
    server.bayeux.state.services.add("/service/echo", lambda call: call.answer(call.data))
    answer = server.client().publish("/service/echo", 1)
    assert [element["timestamp"] for element in answer.elements] == [TEXT, TEXT]


def test_hundredths_of_a_second_always_have_two_digits() -> None:
    server = Server(Timestamp(lambda: 1_700_000_000_007))
    assert server.guest().handshake().reply["timestamp"] == "2023-11-14T22:13:20.00"
