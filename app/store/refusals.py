"""What it means when the store answers with an error."""

from hiredis import ReplyError

# It cannot take this call now, nor any behind it: they wait for another connection.
# One without our scripts gets them with the next greeting.
_NOT_NOW = frozenset({"BUSY", "CLUSTERDOWN", "LOADING", "MASTERDOWN", "NOSCRIPT", "READONLY"})
# It is there and did not do it: it is full, cannot write or has too few replicas.
_REFUSED = frozenset({"MISCONF", "NOREPLICAS", "OOM"})


class NotNow(Exception):
    """The store could do nothing for anybody."""


class StoreRefused(Exception):
    """The store certainly did not do it; `reason` is OOM, MISCONF or NOREPLICAS."""

    def __init__(self, reason: str, text: str) -> None:
        super().__init__(text)
        self.reason = reason


class ScriptFailed(Exception):
    """A script or command answered with an error; `code` is its first word."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


class LineClosed(Exception):
    """The line was closed before the answer came: nobody knows."""

    def __init__(self) -> None:
        super().__init__("the line to the store was closed")


def refusal(error: ReplyError) -> NotNow | StoreRefused | ScriptFailed:
    """The error as one of ours."""
    text = str(error)
    code = text.partition(" ")[0]
    if code in _NOT_NOW:
        return NotNow(text)
    return StoreRefused(code, text) if code in _REFUSED else ScriptFailed(code, text)
