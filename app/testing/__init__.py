"""A server in a test's process, with a clock that the test moves: see docs/how-to/testing.md."""

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
