"""Two processes that use the name of one host: one of them goes, and it is the newcomer."""

from holdfast.hosts.naming import OwnName
from holdfast.hosts.rows import HostRow


class Site:
    """What one process makes of the row under its name, which it reads twice a second."""

    def __init__(self, nonce: str = "m") -> None:
        self.now = 100.0
        self.nonce = nonce
        self.name = OwnName(nonce, lambda: self.now)

    def look(self, nonce: str = "", n: int = 0) -> None:
        self.now += 0.5
        self.name.saw(HostRow(nonce, n) if nonce else None)


def test_a_name_that_nobody_uses_is_free_at_once() -> None:
    site = Site()
    assert not site.name.is_ours
    site.look()
    assert site.name.is_ours


def test_a_row_that_stands_is_taken_over_after_three_seconds() -> None:
    site = Site()
    for _ in range(6):
        site.look("z", 7)
        assert not site.name.is_ours
    site.look("z", 7)
    assert site.name.is_ours
    assert not site.name.is_taken


def test_a_newcomer_never_writes_while_another_process_does() -> None:
    for other in "az":
        site = Site()
        for n in range(3):
            assert not site.name.is_taken
            site.look(other, n)
        assert site.name.is_taken
        assert not site.name.is_ours


def test_a_last_row_of_a_process_that_has_ended_is_no_second_host() -> None:
    site = Site()
    site.look("z", 7)
    for _ in range(7):
        site.look("z", 8)
    assert site.name.is_ours
    assert not site.name.is_taken


def test_the_next_process_of_a_host_with_its_nonce_goes_on_at_once() -> None:
    site = Site()
    site.look("m", 900)
    assert site.name.is_ours


def test_of_two_that_started_at_once_the_lower_nonce_stays() -> None:
    for nonce, is_taken in (("a", False), ("z", True)):
        site = Site(nonce)
        site.look()
        for n in range(6):
            site.look("m", n)
        assert site.name.is_taken is is_taken
        assert site.name.is_ours
