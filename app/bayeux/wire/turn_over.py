"""The end of a turn before a message is handled completely."""


class TurnOver(Exception):
    """The turn is over before a message was handled completely.

    Raised by code that has remembered in the exchange how far it came, and is called again with
    the same message in a later turn.
    """
