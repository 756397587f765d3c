"""The unit that is delivered: serialised once, shared by all its receivers."""


class Message:
    """One published message.

    `wire` is the complete event as JSON; no receiver ever causes it to be serialised again.
    `linger_s` makes it lazy: that long it may wait for company. `frame` is room for one transport
    to keep its own form of the same bytes.
    """

    __slots__ = ("frame", "linger_s", "wire")

    def __init__(self, wire: bytes, *, linger_s: float | None = None) -> None:
        self.wire = wire
        self.linger_s = linger_s
        self.frame: bytes | None = None
