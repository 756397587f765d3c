"""The refusal of an operator's command or request."""

ILLEGAL = "user.illegalArgument"
NOT_ALLOWED = "user.security.authorization.notAuthorized"
OUR_FAULT = "internal.unknown"


class CommandRefused(Exception):
    """The command is refused, with one of xmlBlaster's error codes."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
