"""The numbers of this process's calls, by which the store carries out each of them once.

`lua/fence.lua` is the other side: the store notes the last call that it carried out.
"""

from typing import Final, cast

from holdfast.store.links.reply_errors import CallSkipped, ScriptFailed, WentBack

# What a reply says that is none of the call's effect: it had none; see `take.lua`.
_NOT_DONE: Final = b"PLACE"


class CallNumbers:
    """Numbers the calls of an epoch from 1, and checks by their answers that none was lost.

    Answers come in the order of the calls. The store refuses some calls before their scripts begin,
    so a call need not follow the one before it.
    """

    def __init__(self) -> None:
        self.begin("00000000")

    def begin(self, nonce: str) -> None:
        """Begin at 1 in an epoch with this random text. All earlier calls must have been answered.

        It has eight characters.
        """
        self._nonce = nonce
        self._made = self._answered = 0
        # The last call that the store has carried out, as far as known. Before it, there may be
        # one that failed, of which this is unknown: then `_certain` is smaller.
        self._done = self._certain = 0
        # The last call that the store must carry out before later ones, if it did not refuse it.
        self._needed = 0
        self._name = self._name_of(0)

    @property
    def answered(self) -> int:
        """The number of the last call that was answered."""
        return self._answered

    @property
    def answered_name(self) -> str:
        """The name of that call."""
        return self._name_of(self._answered)

    def next(self, *, may_be_refused: bool) -> str:
        """Return the first argument of the next call."""
        self._made = number = self._made + 1
        before, self._name = self._name, self._name_of(number)
        # What is missing right before the oldest call without an answer must be known to its
        # repeat: the answer that first showed it may be lost. So the store remembers from here on.
        word = f"{before} {self._name} {self._needed} {self._answered}"
        if not may_be_refused:
            self._needed = number
        return word

    def heard(self, reply: object) -> object:
        """Return what the reply to the oldest call means to its caller.

        Raises `WentBack` if the call was carried out, but the store has lost others before it.
        """
        self._answered = number = self._answered + 1
        if isinstance(reply, Exception):
            return self._failed(number, reply)
        # A list begins with the name of the call before. Other replies are only that.
        before, meaning = (reply[0], reply[1:]) if isinstance(reply, list) else (reply, None)
        is_expected = self._is_expected(number, cast("bytes", before))
        if not (isinstance(meaning, list) and meaning[:1] == [_NOT_DONE]):
            self._done = self._certain = number
            self._needed = max(self._needed, number)
        if not is_expected:
            raise WentBack(meaning)
        return meaning

    def _is_expected(self, number: int, before: bytes) -> bool:
        """Return whether the store had the calls that it is known to have carried out."""
        name, _, skipped = before.partition(b" ")
        last = int(name[len(self._nonce) + 1 :])
        if last < number:
            return self._certain <= last <= self._done
        # A repeat. When the call was carried out, its reply had shown what was missing.
        ranges = [each.split(b"-") for each in skipped.split()]
        return not any(int(first) <= self._certain <= int(to) for first, to in ranges)

    def _name_of(self, number: int) -> str:
        return f"{self._nonce}-{number:012d}"

    def _failed(self, number: int, reply: Exception) -> Exception:
        if not isinstance(reply, ScriptFailed) or reply.code in ("EPOCH", "BACK"):
            return reply
        # Whether the store has noted the number of a call that failed is unknown, too.
        self._done = number
        return CallSkipped(str(reply)) if reply.code == "REFUSED" else reply
