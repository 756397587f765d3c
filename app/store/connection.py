"""The error of a store that cannot be used."""


class StoreUnavailable(Exception):
    """The store cannot be reached or used; the text says why."""
