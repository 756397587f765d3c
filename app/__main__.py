"""`python -m app` is the command `holdfast`."""

from app.cli.main import main

if __name__ == "__main__":
    main()
