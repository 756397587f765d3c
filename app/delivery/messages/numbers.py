"""Numbers in JSON, where 5 and 5.0 are the same."""


def whole(value: object) -> int | None:
    """Return the integer value, None if there is none. True and false are not numbers."""
    if type(value) is int:
        return value
    if type(value) is float and value.is_integer():
        return int(value)
    return None
