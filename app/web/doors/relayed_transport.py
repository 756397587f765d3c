"""The transport of a relayed connection, which says what is known of its client."""

import asyncio
from typing import Any

from holdfast.web.front.arrival import RelayedClient


class RelayedTransport:
    """Passes everything on to the transport of the relay, but tells the client's address and TLS.

    The relay itself is a Unix socket, whose peers are trusted like this machine.
    """

    def __init__(self, relay: asyncio.BaseTransport, client: RelayedClient) -> None:
        self._relay = relay
        self._facts: dict[str, Any] = {
            "peername": "" if client.peer is None else client.peer,
            # Who asks wants to know only whether there is one.
            "sslcontext": client,
            "peercert": {"subject": tuple((pair,) for pair in client.subject)},
        }

    def get_extra_info(self, name: str, default: Any = None) -> Any:  # noqa: ANN401 - as transports do
        if name in self._facts:
            return self._facts[name]
        return self._relay.get_extra_info(name, default)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - what the relay has
        return getattr(self._relay, name)
