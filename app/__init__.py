"""Reliable messages for browsers and scripts: a Bayeux/CometD server, and its Python client.

Import what `holdfast.client` and `holdfast.interface` list, and import it from here. Tests of
applications also import `holdfast.testing`. Every other module of this package is the server's own
and may change with any release.
"""

import sys
from typing import TYPE_CHECKING

if sys.version_info < (3, 11):  # noqa: UP036 - pip checks it, but nobody does where sources run
    _NEEDS = f"holdfast needs Python 3.11 or newer; this is {sys.version.split()[0]}"
    if sys.argv[0] == "-m":
        sys.exit(_NEEDS)
    raise RuntimeError(_NEEDS)

if TYPE_CHECKING:
    from holdfast.client import *  # noqa: F403
    from holdfast.interface import *  # noqa: F403

    __version__: str
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
            "SessionTaken",
            "Subscription",
            "SyncClient",
            "SyncSubscription",
            "TokenFailed",
            "WrongUse",
        )
    )

    # The names that extensions import; they need the server.
    _INTERFACE = frozenset(
        (
            "AWAITED",
            "GIVEN_UP",
            "REFUSED",
            "REFUSED_FOR_GOOD",
            "Authorizer",
            "Caller",
            "Denial",
            "Dispatcher",
            "DispatcherInput",
            "ErrorCode",
            "ErrorReply",
            "Failure",
            "ForMessage",
            "ForRest",
            "Json",
            "Operation",
            "Qos",
            "Reaction",
            "Refused",
            "SecurityPolicy",
            "ServerApi",
            "ServerExtension",
            "ServiceCall",
            "SessionApi",
            "SessionExtension",
            "Vote",
        )
    )

    def __getattr__(name: str) -> object:
        """Load the client, or the interface for extensions, on first use."""
        from importlib import import_module

        if name == "__all__":
            return sorted(_CLIENT | _INTERFACE) if _has_server() else sorted(_CLIENT)
        if name == "__version__":
            return import_module("holdfast.distribution").release()
        if name in _CLIENT:
            return getattr(import_module("holdfast.client"), name)
        if name not in _INTERFACE:  # a module of this package, or nothing
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        try:
            return getattr(import_module("holdfast.interface"), name)
        except ModuleNotFoundError as error:
            from holdfast.distribution import install_command

            raise ImportError(
                f"holdfast.{name} needs the server, and {error.name} is not installed: "
                f"{install_command()}"
            ) from error

    def __dir__() -> list[str]:
        """Name what can be imported although it is not loaded yet."""
        return sorted({*globals(), *_CLIENT, *_INTERFACE})

    def _has_server() -> bool:
        """Whether what the server needs is installed: `import *` must work without it."""
        try:
            from holdfast import interface  # noqa: F401
        except ModuleNotFoundError:
            return False
        return True
