"""Measures the cost of a check of rights: `python -m bench.rights`."""

import statistics
import time
from collections.abc import Callable, Mapping
from types import ModuleType

from holdfast.bayeux.wire.login import Login, LoginMethod
from holdfast.bayeux.wire.operation import Operation
from holdfast.login import rules as measured
from holdfast.login.rights_file import read_rights
from holdfast.login.rules import LoginRules, RuleGrants, Rules

ROUNDS = 7
TIMES = 200_000
FEW = 2_000
# The number of rules for other subjects; ten more are for everybody.
OTHERS = 90
CHANNEL = "/rooms/9/talk"
LOGIN = Login("ada", LoginMethod.TOKEN, frozenset({"staff"}))


def file_of_rules() -> bytes:
    """Return a file of a hundred rules, the last of which allows."""
    rules = [
        f"[[rule]]\nwho=['joe{n}']\nmay=['all']\nchannels=['/own/{n}/**']" for n in range(OTHERS)
    ]
    rules += [f"[[rule]]\nwho=['*']\nmay=['all']\nchannels=['/rooms/{n}/**']" for n in range(10)]
    return "\n".join(rules).encode()


def us(check: Callable[[], object], times: int) -> list[float]:
    """Return the microseconds of one check, for each round."""
    costs = []
    for _ in range(ROUNDS):
        begun = time.process_time()
        for _ in range(times):
            check()
        costs.append((time.process_time() - begun) / times * 1e6)
    return costs


def main() -> None:
    given = read_rights(file_of_rules()).rules
    grants = RuleGrants(Rules(given), LOGIN)
    mine = LoginRules(given, LOGIN)
    publish = Operation.PUBLISH
    costs = {
        "nothing but the call": us(lambda: None, TIMES),
        "cached": us(lambda: grants.allows(publish, CHANNEL), TIMES),
        "decided": us(lambda: mine.decide(publish, CHANNEL), FEW),
        "rules of a login found": us(lambda: LoginRules(given, LOGIN), FEW // 10),
    }
    print_table(f"check of {len(given)} rules", costs, measured)


def print_table(what: str, costs: Mapping[str, list[float]], measured: ModuleType) -> None:
    """Print the costs, and whether the measured code is compiled."""
    is_compiled = not str(measured.__file__).endswith(".py")
    how = "compiled" if is_compiled else "interpreted"
    print(f"| {what}, {how} | us: best | median | worst |\n| --- | --- | --- | --- |")
    for name, each in costs.items():
        figures = (min(each), statistics.median(each), max(each))
        print(f"| {name} | {' | '.join(f'{figure:.3f}' for figure in figures)} |")


if __name__ == "__main__":
    main()
