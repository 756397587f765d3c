"""What the importer of a real supervisor forks: a server without a supervisor of its own."""

from holdfast.cli.main import main

if __name__ == "__main__":
    main()
