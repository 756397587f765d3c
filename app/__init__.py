"""Reliable messages for browsers and scripts: a Bayeux/CometD server.

Import what `holdfast.interface` lists, and import it from here. Every other module of this package
is the server's own and may change with any release.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.interface import *  # noqa: F403
else:

    def __getattr__(name: str) -> object:
        """Load the interface on first use: most commands start without the protocol."""
        if not name[:1].isupper():  # a module of this package, or nothing
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        return getattr(import_module("holdfast.interface"), name)
