"""Spark's daemon that forks Python workers; it imports what they need, once for all of them."""

import sys

from pyspark.daemon import manager

_TASKS = "pyspark.worker"


def main() -> None:
    if sys.argv[1:] == [_TASKS]:
        import holdfast.pipeline.preloaded  # noqa: F401
    manager()


if __name__ == "__main__":
    main()
