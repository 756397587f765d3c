"""The errors of the store, and which error replies they represent."""

from hiredis import ReplyError

# The store cannot take any call now, so calls wait for another connection.
_NOT_NOW = frozenset({"BUSY", "CLUSTERDOWN", "LOADING", "MASTERDOWN", "READONLY"})
_NO_SCRIPT = "NOSCRIPT"
# The store refused this call: it is full, cannot write, or has too few replicas.
_REFUSED = frozenset({"MISCONF", "NOREPLICAS", "OOM"})
# The keys of a slot are moving to another server of a cluster, or have moved.
_ELSEWHERE = frozenset({"ASK", "MOVED", "TRYAGAIN"})


class StoreBusy(Exception):
    """The store cannot serve any call now."""


class ScriptsLost(StoreBusy):
    """The store does not have our scripts any more. It gets them at once, or with a greeting."""


class StoreRefused(Exception):
    """The store did not carry out the call. The text begins with OOM, MISCONF or NOREPLICAS."""


class StoreElsewhere(Exception):
    """The store did not carry out the call, because its keys are moving or have moved.

    `code` is MOVED: to the server at `place`, which has them all from now on; ASK: that one only,
    for this call; TRYAGAIN: some keys of this call are still here, some there already.
    """

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code
        # Host and port. An empty host means the server that sent the reply.
        self.place = _place(text)


class ScriptFailed(Exception):
    """A script or command failed. `code` is the first word of the error."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


class CallSkipped(Exception):
    """The store has carried out later calls, and this one neither before nor now.

    It refused the call before, and the answer was lost; or the call's keys were on the move.
    """


class WentBack(Exception):
    """The store carried out the call, but has lost earlier ones. Has the reply to the call."""

    def __init__(self, reply: object) -> None:
        super().__init__("the store has lost earlier calls")
        self.reply = reply


class LinkClosed(Exception):
    """The link was closed before the answer arrived, so the outcome is unknown."""

    def __init__(self) -> None:
        super().__init__("the store link was closed")


def error_of(reply: ReplyError) -> StoreBusy | StoreElsewhere | StoreRefused | ScriptFailed:
    """Return the error that the reply represents."""
    text = str(reply)
    code = text.partition(" ")[0]
    if code in _ELSEWHERE:
        return StoreElsewhere(code, text)
    if code == _NO_SCRIPT:
        return ScriptsLost(text)
    if code in _NOT_NOW:
        return StoreBusy(text)
    return StoreRefused(text) if code in _REFUSED else ScriptFailed(code, text)


def _place(text: str) -> tuple[str, int] | None:
    """Return the place in MOVED SLOT HOST:PORT; None if there is none, or no known host."""
    host, _, port = text.rpartition(" ")[2].rpartition(":")
    return (host, int(port)) if port.isdecimal() and host != "?" else None
