"""What is called where something may be told, and nobody needs to hear of it."""


def ignore(*_: object) -> None:
    """Ignore what is told."""
