"""A function for callbacks that need not be told."""


def ignore(*_: object) -> None:
    """Ignore what is told."""
