"""A Lua script, its name in the store, and the keys of a call."""

import hashlib
from collections.abc import Sequence


class Script:
    """A Lua script that the store caches under its digest.

    Args:
        with_note: The variant for calls that carry a journal note.
        preludes: The files that all variants depend on.
    """

    def __init__(
        self,
        name: str,
        source: str,
        with_note: "Script | None" = None,
        preludes: Sequence[str] = (),
    ) -> None:
        self.name = name
        self.preludes = preludes
        self.source = source
        self.with_note = with_note
        # The store's name for the script. Not used for security.
        self.sha = hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest()


class Positions:
    """The Redis keys of a call, each once. Arguments refer to them by position."""

    def __init__(self, *fixed: str) -> None:
        self.keys = list(fixed)
        self._known: dict[str, int] = {}

    def of(self, key: str) -> int:
        """Return the position, counted from 1 as in Lua."""
        found = self._known.get(key)
        if found is None:
            self.keys.append(key)
            found = self._known[key] = len(self.keys)
        return found
