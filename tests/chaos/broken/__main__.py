"""`python -m tests.chaos.broken BUILD serve ...`: the server, broken."""

import sys

from holdfast.cli.main import main as serve
from tests.chaos.broken.builds import BUILDS


def main() -> None:
    """Break what is to be broken before anything of the server has been made."""
    BUILDS[sys.argv.pop(1)].damage()
    serve()


if __name__ == "__main__":
    main()
