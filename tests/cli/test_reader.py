"""`holdfast reader` against an administration."""

from tests.cli.conftest import Shell


def test_readers_are_listed_with_what_they_read_and_for_how_long(shell: Shell) -> None:
    rows = [line.split("\t") for line in shell.run("reader", "list").stdout.splitlines()]
    assert rows[0] == ["ID", "SUBJECT", "ADDRESS", "LIVE", "SINCE", "BYTES", "CHANNELS"]
    [ada, bob] = rows[1:]
    assert ada[1:4] == ["ada", "192.0.2.1", "events"]
    assert ada[6].endswith("/rooms/9 and 5 more")
    assert bob[6] == "/news"
