"""Why there is no release."""


class Refused(Exception):
    """Nothing was released; the text says why, and what to do about it."""
