"""The settings of a server, as far as somebody asks for them."""

from fnmatch import fnmatchcase

_DEFAULTS = {
    "appenddirname": "appendonlydir",
    "appendfilename": "appendonly.aof",
    "appendfsync": "everysec",
    "appendonly": "no",
    "cluster-node-timeout": "15000",
    "dir": "/data",
    "maxmemory": "0",
    "maxmemory-policy": "noeviction",
    "min-replicas-to-write": "0",
    "port": "0",
    "save": "",
}
# With less memory than this, a server is full when it is empty.
_EMPTY_BYTES = 1024**2


class Settings:
    """Names and values, and what commands need to know of them."""

    def __init__(self) -> None:
        self._values = dict(_DEFAULTS)
        self._learn()

    def set(self, name: str, value: str) -> bool:
        """Change a setting. Returns whether there is one of that name."""
        if name not in self._values:
            return False
        self._values[name] = value
        self._learn()
        return True

    def _learn(self) -> None:
        values = self._values
        self.has_file = values["appendonly"] == "yes"
        self.syncs_always = self.has_file and values["appendfsync"] == "always"
        self.min_replicas = int(values["min-replicas-to-write"])
        self.is_full = 0 < int(values["maxmemory"]) < _EMPTY_BYTES

    def get(self, *patterns: str) -> dict[str, str]:
        return {
            name: value
            for name, value in sorted(self._values.items())
            if any(fnmatchcase(name, pattern) for pattern in patterns)
        }
