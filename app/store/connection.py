"""What can be wrong with a store."""


class StoreUnavailable(Exception):
    """The store cannot be reached or cannot be used; the text says why."""
