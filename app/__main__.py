"""The command `holdfast`, also as `python -m holdfast`; it needs the packages of the server."""

import shlex
import sys


def main() -> None:
    """Run the command; without the server, say how to install it."""
    if sys.argv[1:] == ["version"]:
        # Scripts ask for it often, and reading options takes most of the time of a command.
        from holdfast.cli.installed import summary

        sys.stdout.write(summary() + "\n")
        return
    try:
        from holdfast.cli.main import main as run

        run()
    except ModuleNotFoundError as error:
        if str(error.name).partition(".")[0] == "holdfast":
            raise
        sys.exit(
            f"holdfast: the command needs the server, and {error.name} is not installed: run "
            f"{shlex.quote(sys.executable)} -m pip install 'holdfast[server]'"
        )


if __name__ == "__main__":
    main()
