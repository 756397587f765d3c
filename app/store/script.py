"""A Lua script and its name in the store."""

import hashlib
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Script:
    """A Lua script that the store keeps under its digest."""

    name: str
    source: str
    sha: str = field(init=False)

    def __post_init__(self) -> None:
        # The store's name for it, nothing that protects anybody.
        sha = hashlib.sha1(self.source.encode(), usedforsecurity=False).hexdigest()
        object.__setattr__(self, "sha", sha)
