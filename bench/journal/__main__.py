"""Made-up journals, and what writing a journal costs."""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from bench.journal.generate import generate
from bench.journal.outlets import Files, Nowhere, Outlet, Streams


def parse_arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.journal", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    made = commands.add_parser("generate", help="write a made-up journal and print its totals")
    made.add_argument("--events", type=int, default=2_000_000)
    made.add_argument("--nodes", type=int, default=4)
    made.add_argument("--hours", type=float, default=6)
    made.add_argument("--seed", type=int, default=7)
    where = made.add_mutually_exclusive_group()
    where.add_argument("--redis", help="URL of a store that nothing else uses")
    where.add_argument("--files", type=Path, help="a folder")
    made.add_argument("--namespace", default="holdfast")
    return parser.parse_args(words)


def outlet_of(options: argparse.Namespace) -> Outlet:
    if options.redis:
        return Streams(options.redis, options.namespace)
    return Files(options.files) if options.files else Nowhere()


def main() -> None:
    options = parse_arguments()
    told = generate(
        outlet_of(options),
        events=options.events,
        nodes=options.nodes,
        hours=options.hours,
        seed=options.seed,
    )
    print(json.dumps(told, indent=2))


if __name__ == "__main__":
    main()
