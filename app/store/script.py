"""A Lua script and its name in the store."""

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
