"""What a client without an event loop refuses before it does anything."""

from typing import cast

import pytest

from holdfast.client.client import Client
from holdfast.client.messages import Message
from holdfast.client.sync_client import SyncCallback, SyncClient


async def later(_: Message) -> None:
    raise AssertionError("it is never called")


class Later:
    async def __call__(self, message: Message) -> None:
        await later(message)


@pytest.mark.parametrize("callback", [later, Later().__call__])
def test_callbacks_that_nobody_would_await_are_refused(callback: SyncCallback) -> None:
    client = SyncClient("http://127.0.0.1:9/cometd")
    for use in (client.subscribe, client.listen, client.respond):
        with pytest.raises(TypeError, match="is a coroutine function"):
            use("/a", callback)
    client._loop.close()


def test_it_takes_the_options_of_the_other_client_alone() -> None:
    with pytest.raises(TypeError, match="tokn"):
        SyncClient("http://127.0.0.1:9/cometd", tokn="x")  # type: ignore[call-arg]
    assert cast("object", SyncClient.__init__.__doc__) == Client.__init__.__doc__
