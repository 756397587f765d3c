"""What takes more than one turn of the event loop."""


class Unfinished(Exception):
    """The turn is over before all that a message asks for was done.

    Raised by who has remembered how far it came. It is asked again with the same message in a later
    turn; the extensions that have seen the message before it are not.
    """

    def __init__(self, extension: int | None = None) -> None:
        super().__init__()
        # Which of the session's extensions is asked again; none: all have seen the message.
        self.extension = extension
