"""Numbers as JSON has them: it makes no difference between 5 and 5.0."""


def whole(value: object) -> int | None:
    """The integer that the value is; None if it is none. True and false are no numbers."""
    if type(value) is int:
        return value
    if type(value) is float and value.is_integer():
        return int(value)
    return None
