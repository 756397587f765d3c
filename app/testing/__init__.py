"""A server in the process of a test, with a clock that the test moves; docs/testing.md shows it."""

try:
    from holdfast.testing.local_server import LocalServer, local_server
    from holdfast.testing.local_store import LocalStore
except ModuleNotFoundError as error:
    from holdfast.distribution import install_command

    raise ImportError(
        f"holdfast.testing needs the server, and {error.name} is not installed: "
        f"{install_command('testing')}"
    ) from error

__all__ = ["LocalServer", "LocalStore", "local_server"]
