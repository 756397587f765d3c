"""Finds which of the faults of a failing seed it needs."""

from dataclasses import replace

from tests.simulation.play import Result, Setting, play


def shrunk(failing: Result, setting: Setting) -> Result:
    """Return what came of the seed with as few faults as possible that still break a promise.

    What goes wrong first is left out last. The play has the same beginning up to the fault that is
    left out, and another course from there on.
    """
    found = failing
    without = setting.without
    for place in reversed(range(len(failing.faults))):
        fewer = without | {place}
        tried = play(failing.seed, replace(setting, without=fewer, keeps_trace=False))
        if tried.violations:
            found, without = tried, fewer
    return found
