"""The memory of a server during an attack."""

from pathlib import Path

# Lets the kernel measure the peak anew.
_FORGET_PEAK = "5"
_KB_PER_MB = 1024


class Memory:
    """How much the memory of a process has grown since this was made, in MB."""

    def __init__(self, pid: int) -> None:
        self._status = Path("/proc", str(pid), "status")
        Path("/proc", str(pid), "clear_refs").write_text(_FORGET_PEAK)
        self.before = self._read("VmRSS")

    def peak(self) -> float:
        """Return by how much it had grown at most."""
        return self._read("VmHWM") - self.before

    def left(self) -> float:
        """Return by how much it is larger now."""
        return self._read("VmRSS") - self.before

    def _read(self, name: str) -> float:
        lines = self._status.read_text().splitlines()
        [value] = [line.split()[1] for line in lines if line.startswith(f"{name}:")]
        return int(value) / _KB_PER_MB
