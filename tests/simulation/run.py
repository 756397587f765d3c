"""Plays seeds in a process of their own, with the sources of the server."""

import tempfile

from tests.forking import ROOT, start
from tests.serving import environment

# Their import takes longer than most seeds.
_IMPORTS = ("tests.simulation.coverage", "tests.simulation.play", "tests.simulation.broken")


def simulate(*words: str) -> tuple[int, str]:
    """Run `python -m tests.simulation`; returns its exit code, and what it said."""
    # With the hash seed that it would begin again for.
    seeded = {**environment(str(ROOT)), "PYTHONHASHSEED": "0"}
    with tempfile.TemporaryFile() as errors:
        ran = start(
            "tests.simulation",
            *words,
            environment=seeded,
            cwd=ROOT,
            errors=errors,
            imports=_IMPORTS,
        )
        assert ran.stdout is not None
        with ran.stdout:
            said = ran.stdout.read().decode()
        code = ran.wait()
        errors.seek(0)
        complaints = errors.read().decode()
    assert complaints == "", complaints
    return code, said
