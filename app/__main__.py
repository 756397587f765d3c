"""The command `holdfast`, also as `python -m holdfast`; where only the client is, how to get it."""

import gc
import sys
from importlib import import_module
from importlib.util import find_spec

# New objects at which Python begins to look for garbage: more than any command needs to start.
_YOUNG = 200_000
# A server without a supervisor imports none of these.
_BELOW_A_SUPERVISOR = ("holdfast.compose.supervised", "holdfast.supervisor.titles")


def main() -> None:
    """Run the command; without the server, say how to install it."""
    if sys.argv[1:] == ["version"]:
        # Scripts ask for it often, and reading options takes most of the time of a command.
        from holdfast.cli.installed import summary

        sys.stdout.write(summary() + "\n")
        return
    # Imports make many objects but hardly any garbage: collections would take a tenth of the time
    # of most commands. The server chooses its own number.
    gc.set_threshold(_YOUNG)
    try:
        if sys.argv[1:2] == ["serve"]:
            _enter_supervisor()
        from holdfast.cli.main import main as run

        run()
    except ModuleNotFoundError as error:
        name = str(error.name)
        if name.startswith("holdfast.") and find_spec("holdfast.cli"):
            raise
        from holdfast.distribution import install_command

        sys.exit(
            f"holdfast: the command needs the server, and {name} is not installed: run "
            f"{install_command()}"
        )


def _enter_supervisor() -> None:
    """Become what starts servers, unless this process is to be a server itself."""
    if sys.platform == "win32":
        sys.stderr.write("holdfast cannot start: servers run on Linux and macOS, not on Windows\n")
        sys.exit(2)
    from holdfast.supervisor.entry import enter

    enter(sys.argv[2:], _load_server)


def _load_server(count: int) -> None:
    """Import what so many servers need."""
    from holdfast.cli.main import load

    load("serve")
    for each in _BELOW_A_SUPERVISOR:
        import_module(each)
    if count > 1:
        from holdfast.compose.several import import_for_several

        import_for_several()


if __name__ == "__main__":
    main()
