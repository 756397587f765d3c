"""What is looked at of copies that their receivers have done with."""

from tests.simulation.judges.copies import Copy
from tests.simulation.judges.excuses import Excuses


def test_copies_that_stay_settled_are_looked_at_and_those_that_are_not_settled_are_not() -> None:
    excuses = Excuses()
    excuses.add("kill_server", 5.0, 1.0)
    stays, comes_again = Copy([1.0], sure={None: 2.0}), Copy([1.0, 6.0], sure={None: 2.0})
    found = [[*each.returns(excuses, "copy")] for each in (stays, comes_again, Copy([1.0, 6.0]))]
    assert found == [[], [], []]
    assert excuses.judged == {"copy": 2}
    assert excuses.used == {"copy: kill_server": 1}
