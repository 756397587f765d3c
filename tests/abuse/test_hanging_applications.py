"""Applications that never answer, which the server asks or calls, keep nobody else waiting."""

import socket
from base64 import b64encode
from collections.abc import Iterator
from contextlib import ExitStack

import orjson
import pytest

from tests.abuse.attacker import HANDSHAKE, request
from tests.abuse.conftest import MakeTarget
from tests.abuse.target import Target
from tests.abuse.test_origins import ask

SECRET = "whsec_" + b64encode(b"an application that never answers").decode()
USER = "X-User"
MANY, ADDRESSES = 300, 30
MOST_MIB = 60.0
SIZE, MOST_BYTES = 10_000, 8 * 1024 * 1024


@pytest.fixture
def hanging(target_with: MakeTarget) -> Iterator[Target]:
    """A server whose application accepts connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0), backlog=1000) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        posts = {"url": url, "secret": SECRET, "allow_private": True}
        target = target_with(
            backend={"headers": [USER], **posts},
            webhooks={"silent": {"channels": ["/hooked"], **posts}},
            login_anonymous=True,
            journal=False,
            max_queue_bytes=MOST_BYTES,
        )
        target.expected_error = "the backend does not answer"
        yield target


def test_who_asks_for_a_backend_that_hangs_is_refused_in_time(hanging: Target) -> None:
    hello = request(orjson.dumps([HANDSHAKE]), {USER: "ada"})
    with hanging.bystander(), ExitStack() as stack:
        sources = [f"127.0.0.{2 + number % ADDRESSES}" for number in range(MANY)]
        wires = [stack.enter_context(hanging.wire(source=source)) for source in sources]
        for wire in wires:
            wire.send(hello)
        for wire in wires:
            answer = wire.answer()
            assert answer.error() in ("503::backend_unavailable", "429::handshakes_exceeded")
    hanging.until_metric("holdfast_sessions", 1)
    assert hanging.growth_mib() < MOST_MIB


def test_what_is_published_to_a_webhook_that_hangs_waits_in_its_queue(hanging: Target) -> None:
    body = orjson.dumps([{"channel": "/hooked", "data": "x" * SIZE}] * 20)
    with hanging.bystander():
        for _ in range(50):
            assert ask(hanging, request(body, method="POST /publish")).status == 200
    # As much as a queue may have; the others are dead letters.
    waiting_bytes = hanging.metric("holdfast_entries_waiting") * SIZE
    assert MOST_BYTES / 2 < waiting_bytes <= MOST_BYTES
    assert hanging.growth_mib() < MOST_MIB
