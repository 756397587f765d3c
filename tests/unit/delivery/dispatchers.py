"""Dispatchers for tests."""

from holdfast.delivery.queues.dispatcher import Dispatcher, Policy


def alive(retries: int = 0, delay_s: float = 1.0) -> Dispatcher:
    dispatcher = Dispatcher(Policy(retries, delay_s))
    dispatcher.contact(0.0)
    return dispatcher


def attempts(dispatcher: Dispatcher) -> list[float | None]:
    """When the attempts of a receiver that never answers fall due; None at the end: it is dead."""
    dues: list[float | None] = []
    while len(dues) < 6 and dispatcher.deadline is not None:
        dues.append(round(dispatcher.deadline, 6))
        dispatcher.due(dispatcher.deadline)
    return [*dues, None] if dispatcher.is_dead else dues
