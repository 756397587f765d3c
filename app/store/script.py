"""A Lua script and its name in the store."""

import hashlib


class Script:
    """A Lua script that the store keeps under its digest.

    Args:
        with_note: What is called instead, if the call carries a note for the journal.
    """

    __slots__ = ("name", "sha", "source", "with_note")

    def __init__(self, name: str, source: str, with_note: "Script | None" = None) -> None:
        self.name = name
        self.source = source
        self.with_note = with_note
        # The store's name for it, nothing that protects anybody.
        self.sha = hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest()
