"""Whom messages are delivered to."""

from app.delivery.queue import CallbackQueue


class Receiver:
    """One receiver: its queue and the patterns that it subscribed to."""

    __slots__ = ("is_ready", "number", "queue", "subscriptions")

    def __init__(self, queue: CallbackQueue, number: int) -> None:
        self.queue = queue
        # For logs, where nothing else that tells receivers apart must be seen.
        self.number = number
        self.subscriptions: set[str] = set()
        # Stands in the hub's list of receivers to be told something when this turn ends.
        self.is_ready = False
