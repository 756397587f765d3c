"""The transport of a relayed connection, which says what is known of its client."""

import asyncio
from collections.abc import Iterable
from typing import Any

from holdfast.web.arrival import RelayedClient


class RelayedTransport(asyncio.Transport):
    """Passes everything on to the transport of the relay, but tells the client's address and TLS.

    The relay itself is a Unix socket, whose peers are trusted like this machine.
    """

    def __init__(self, relay: asyncio.Transport, client: RelayedClient) -> None:
        super().__init__()
        self._relay = relay
        self._facts: dict[str, Any] = {
            "peername": "" if client.peer is None else client.peer,
            # Who asks wants to know only whether there is one.
            "sslcontext": client,
            "peercert": {"subject": tuple((pair,) for pair in client.subject)},
        }

    def get_extra_info(self, name: str, default: Any = None) -> Any:  # noqa: ANN401 - as its base
        if name in self._facts:
            return self._facts[name]
        return self._relay.get_extra_info(name, default)

    def is_closing(self) -> bool:
        return self._relay.is_closing()

    def close(self) -> None:
        self._relay.close()

    def abort(self) -> None:
        self._relay.abort()

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._relay.set_protocol(protocol)

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self._relay.get_protocol()

    def is_reading(self) -> bool:
        return self._relay.is_reading()

    def pause_reading(self) -> None:
        self._relay.pause_reading()

    def resume_reading(self) -> None:
        self._relay.resume_reading()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._relay.set_write_buffer_limits(high, low)

    def get_write_buffer_size(self) -> int:
        return self._relay.get_write_buffer_size()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self._relay.write(data)

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        self._relay.writelines(list_of_data)

    def write_eof(self) -> None:
        self._relay.write_eof()

    def can_write_eof(self) -> bool:
        return self._relay.can_write_eof()
