"""Reliable messages for browsers and scripts: a Bayeux/CometD server, and its Python client.

Import what `holdfast.client` and `holdfast.interface` list, and import it from here. Every other
module of this package is the server's own and may change with any release.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.client import *  # noqa: F403
    from holdfast.interface import *  # noqa: F403
else:
    # The names that clients import, perhaps where the server is not installed.
    _CLIENT = frozenset(
        (
            "Client",
            "ClientError",
            "ClientState",
            "ConnectionLost",
            "Message",
            "NewSubscription",
            "NotConnected",
            "Outbox",
            "OutboxFull",
            "PublishReply",
            "Refuse",
            "Reply",
            "ReplyError",
            "RequestFailed",
            "SessionEnded",
            "Subscription",
            "SyncClient",
            "SyncSubscription",
            "WrongUse",
        )
    )

    def __getattr__(name: str) -> object:
        """Load the client, or the interface for extensions, on first use."""
        if not name[:1].isupper():  # a module of this package, or nothing
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        if name in _CLIENT:
            return getattr(import_module("holdfast.client"), name)
        try:
            return getattr(import_module("holdfast.interface"), name)
        except ModuleNotFoundError as error:
            raise ImportError(
                f"holdfast.{name} needs the server, and {error.name} is not installed: "
                "pip install 'holdfast[server]'"
            ) from error
