"""Which connections are read while a server leaves."""

import asyncio

from holdfast.web.scheduling.reading_gate import Reading, ReadingGate


class Connection:
    def __init__(self) -> None:
        self.is_paused = False

    def pause_until_open(self) -> None:
        self.is_paused = True


def test_all_connections_are_read_through_an_open_gate() -> None:
    gate = ReadingGate()
    assert gate.lets_read(Connection())


def test_only_what_has_begun_is_read_until_it_is_complete() -> None:
    gate, begun, other = ReadingGate(), Connection(), Connection()
    gate.state = Reading.FINISHING
    gate.unfinished.add(begun)
    assert (gate.lets_read(begun), gate.lets_read(other)) == (True, False)
    for each in (begun, other):
        gate.note_complete(each)
    assert (begun.is_paused, other.is_paused) == (True, False)
    assert not gate.lets_read(begun)


def test_an_opened_gate_lets_everything_be_read_and_handled() -> None:
    gate, connection = ReadingGate(), Connection()

    async def wait() -> None:
        gate.state = Reading.STILL
        waiting = asyncio.create_task(gate.until_handling())
        await asyncio.sleep(0)
        assert not waiting.done()
        gate.open()
        await waiting
        await gate.until_handling()

    asyncio.run(wait())
    assert gate.lets_read(connection)
    assert not gate.is_still
