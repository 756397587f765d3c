"""The end of a turn before a message is handled completely."""


class TurnOver(Exception):
    """The turn is over before a message was handled completely.

    Raised by code that has remembered how far it came. It is called again with the same message in
    a later turn; the extensions before it are not.
    """

    def __init__(self, extension: int | None = None) -> None:
        super().__init__()
        # The number of the extension to call again; None if all have seen the message.
        self.extension = extension
