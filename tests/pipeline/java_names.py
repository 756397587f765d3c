"""Names of Java's that Spark's Python asks for with each column: asked once, known from then on.

Else a third of all that Python says to Java while it makes plans is what a function is.
"""

from typing import Any

# Under these names, one of them with its package.
_ASKED_FOR = ("functions", "org.apache.spark.sql.functions", "PythonUtils")


class _Known:
    """A class of Java's, whose methods are those that it had when they were asked for first."""

    def __init__(self, java_class: object) -> None:
        self._class = java_class

    def __getattr__(self, name: str) -> object:
        found = getattr(self._class, name)
        setattr(self, name, found)
        return found


def remember_names(jvm: Any) -> None:
    """Have what is asked for again and again at hand."""
    for name in _ASKED_FOR:
        setattr(jvm, name, _Known(getattr(jvm, name)))
