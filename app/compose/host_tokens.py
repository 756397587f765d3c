"""Keeps the operators' tokens the same on all hosts: by their files here, and the store."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final, Protocol

from holdfast.web.admin.tokens import FILES, FORMER, TokensUnusable, put_token_file, read_token_file

# A server that sees a new token must find the former one, so those come first.
_NAMES: Final = (*FORMER.values(), *FILES.values())
_PRESENT: Final = frozenset(FILES.values())


class TokenStore(Protocol):
    """What all hosts read."""

    async def write_tokens(self, tokens: Mapping[str, bytes], *, over: bool) -> None:
        """Write these, by the names of their files; without `over`, only those it lacks.

        Raises `StoreUnavailable`.
        """


class HostTokens:
    """Writes a token that was replaced on this host into the store, and others into its files.

    Args:
        directory: Where the files are.
    """

    def __init__(self, directory: Path, store: TokenStore) -> None:
        self._directory = directory
        self._store = store
        # What was in the files and in the store after the last look; None before the first.
        self._known: dict[str, bytes] | None = None

    async def look(self, stored: Mapping[str, bytes]) -> None:
        """Compare the files with what the store has. Raises `StoreUnavailable`.

        Args:
            stored: The contents of token files, by name.
        """
        own = {name: self._read(name) for name in _NAMES}
        if not stored.keys() >= _PRESENT:
            # A new store, or one that was emptied. Another host may be first: it is looked again.
            await self._store.write_tokens(_without_empty(own), over=False)
            return
        known = self._known
        changed = {} if known is None else {n: text for n, text in own.items() if text != known[n]}
        for name in _PRESENT:
            # A file that was removed is no wish to have no token.
            if not changed.get(name, b"-"):
                del changed[name]
        if changed:
            await self._store.write_tokens(changed, over=True)
        self._known = {name: changed.get(name, stored.get(name, b"")) for name in _NAMES}
        for name, text in self._known.items():
            if text != own[name]:
                put_token_file(self._directory / name, text.decode("ascii", "replace"))

    def _read(self, name: str) -> bytes:
        try:
            return read_token_file(self._directory / name)
        except TokensUnusable:
            return b""


def _without_empty(tokens: Mapping[str, bytes]) -> dict[str, bytes]:
    return {name: text for name, text in tokens.items() if text}
