"""The kind of a request can be told from its first bytes."""

import pytest

from holdfast.web.http.request_kinds import RequestKind, kind_of

END = b" HTTP/1.1\r\nHost: h\r\n\r\n"


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"GET /healthz" + END, RequestKind.PROBE),
        (b"GET /readyz" + END, RequestKind.PROBE),
        # It collects all figures, which takes longer.
        (b"GET /metrics" + END, RequestKind.QUESTION),
        (b"GET /healthz2" + END, RequestKind.QUESTION),
        (b"GET / HTTP/1.1\r\nUpgrade: websocket\r\n\r\n", RequestKind.UPGRADE),
        (b"GET /healthz HTTP/1.1\r\nUpgrade: WebSocket\r\n\r\n", RequestKind.UPGRADE),
        (b"POST /healthz" + END, RequestKind.OTHER),
        (b"DELETE /" + END, RequestKind.OTHER),
    ],
)
def test_a_request_has_a_kind(data: bytes, kind: RequestKind) -> None:
    assert kind_of(data, is_first=False) is kind


def test_the_first_question_of_a_connection_is_of_another_kind_than_the_next() -> None:
    question = b"GET /nothing" + END
    assert kind_of(question, is_first=True) is RequestKind.FIRST_QUESTION
    assert kind_of(question, is_first=False) is RequestKind.QUESTION
    assert kind_of(b"GET /healthz" + END, is_first=True) is RequestKind.PROBE
