"""The port to other shards for parts that must not know the core: what they ask each other."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol


class AskerPort(Protocol):
    """Who has asked. Answer once, with an empty answer if it could not be done."""

    @property
    def shard(self) -> int | None:
        """The other shard; None if it is this one."""
        ...

    def answer(self, answer: dict[str, Any], /) -> None:
        """Answer without a stored effect."""
        ...


class CallsPort(Protocol):
    """Lets parts of other shards do something, and hears what they ask."""

    def handle(
        self, operation: str, handler: Callable[[Mapping[str, Any], AskerPort, float], None], /
    ) -> None:
        """Let the handler carry an operation out, and answer."""
        ...

    def may_ask(self, shard: int, /) -> bool:
        """Return whether another shard can be asked now."""
        ...

    def send(
        self,
        shard: int,
        operation: str,
        asked: Mapping[str, Any],
        heard: Callable[[dict[str, Any] | None], None],
        /,
    ) -> None:
        """Let another shard carry the operation out, however late.

        `heard` gets None if there is no answer within some seconds: it may be carried out later.
        """
        ...
