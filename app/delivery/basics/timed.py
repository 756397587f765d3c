"""The base of everything that timers hold."""


class Timed:
    """An item with a deadline."""

    __slots__ = ("alarm",)

    def __init__(self) -> None:
        # Its bucket in the timers, 0 for none.
        self.alarm = 0
