"""Generates journals, and measures the cost of writing one."""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from bench.journal.cost import TRAFFIC, measure
from bench.journal.generate import generate
from bench.journal.outlets import Files, Nowhere, Outlet, Streams


def parse_arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.journal", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    made = commands.add_parser("generate", help="generate a journal and print its totals")
    made.add_argument("--events", type=int, default=2_000_000)
    made.add_argument("--nodes", type=int, default=4)
    made.add_argument("--hours", type=float, default=6)
    made.add_argument("--seed", type=int, default=7)
    where = made.add_mutually_exclusive_group()
    where.add_argument("--redis", help="URL of a store that nothing else uses")
    where.add_argument("--files", type=Path, help="a folder")
    made.add_argument("--namespace", default="holdfast")
    cost = commands.add_parser("cost", help="measure what an event costs the server")
    cost.add_argument("--events", type=int, default=100_000, help="of each round")
    cost.add_argument("--rounds", type=int, default=5)
    return parser.parse_args(words)


def outlet_of(options: argparse.Namespace) -> Outlet:
    if options.redis:
        return Streams(options.redis, options.namespace)
    return Files(options.files) if options.files else Nowhere()


def main() -> None:
    options = parse_arguments()
    if options.command == "cost":
        print_costs(options.events, options.rounds)
    else:
        print_made_up(options)


def print_costs(events: int, rounds: int) -> None:
    print("| traffic | us an event: best | median | worst | bytes an event |")
    print("| --- | --- | --- | --- | --- |")
    for traffic in TRAFFIC:
        cost = measure(traffic, events=events, rounds=rounds)
        us = " | ".join(f"{each:.2f}" for each in cost.us)
        print(f"| {traffic.name} | {us} | {cost.bytes:.1f} |", flush=True)


def print_made_up(options: argparse.Namespace) -> None:
    truth = generate(
        outlet_of(options),
        events=options.events,
        nodes=options.nodes,
        hours=options.hours,
        seed=options.seed,
    )
    print(json.dumps(truth, indent=2))


if __name__ == "__main__":
    main()
