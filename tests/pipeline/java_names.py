"""Caches names of Java that PySpark looks up for each column.

Without this, a third of what Python asks Java while it makes plans is what a function is.
"""

from typing import Any

# Under these names, one of them with its package.
_ASKED_FOR = ("functions", "org.apache.spark.sql.functions", "PythonUtils")


class _Known:
    """A class of Java whose methods are looked up only once."""

    def __init__(self, java_class: object) -> None:
        self._class = java_class

    def __getattr__(self, name: str) -> object:
        found = getattr(self._class, name)
        setattr(self, name, found)
        return found


def remember_names(jvm: Any) -> None:
    """Cache the classes that are asked for most often."""
    for name in _ASKED_FOR:
        setattr(jvm, name, _Known(getattr(jvm, name)))
