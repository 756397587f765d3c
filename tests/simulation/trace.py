"""What happened in a simulated world, in order: its hash tells two runs apart."""

from hashlib import blake2b


class Trace:
    """Hashes each step, and keeps it as a line if somebody wants to read it.

    Args:
        keeps: Whether lines are kept.
    """

    def __init__(self, *, keeps: bool = False) -> None:
        self._hash = blake2b(digest_size=8)
        self._keeps = keeps
        self.lines: list[str] = []
        self.steps = 0

    def note(self, now: float, who: str, what: str, data: bytes = b"") -> None:
        """Record a step, and the bytes that it moved."""
        self.steps += 1
        line = f"{now:.6f} {who} {what}"
        self._hash.update(line.encode())
        self._hash.update(data)
        if self._keeps:
            self.lines.append(f"{line} {len(data)} B" if data else line)

    @property
    def digest(self) -> str:
        """Return the hash of everything so far."""
        return self._hash.hexdigest()
