"""When a name has two clients."""

from tests.simulation.judges.excuses import Excuses
from tests.simulation.judges.names import Names
from tests.simulation.session import CONNECT, HANDSHAKE, Attempt


class Scene:
    """Clients that claim one name, a second after the other."""

    def __init__(self) -> None:
        self.now = 1.0
        self.excuses = Excuses()
        self.names = Names(lambda: self.now)

    def claims(self, client_id: str, *, took_s: float = 0.1) -> None:
        self.now += 0.1
        attempt = Attempt("joe/1", "", HANDSHAKE, "door", self.now)
        self.now += took_s
        self.names.answered(attempt, {"clientId": client_id})

    def is_served(self, client_id: str) -> None:
        self.now += 0.1
        attempt = Attempt("joe/1", client_id, CONNECT, "door", self.now)
        self.now += 0.1
        self.names.answered(attempt, {})

    def faults(self) -> list[str]:
        return self.names.violations(self.excuses)


def test_a_client_that_another_one_has_displaced_is_not_served() -> None:
    scene = Scene()
    scene.claims("a")
    scene.is_served("a")
    scene.claims("b")
    scene.is_served("b")
    assert scene.faults() == []
    scene.is_served("a")
    assert scene.faults() == ["S7: a was served as joe/1 at 2.000, behind b"]


def test_whoever_of_two_clients_is_served_first_goes_on_if_both_claimed_at_once() -> None:
    scene = Scene()
    scene.claims("a", took_s=0.5)
    scene.now = 1.2
    scene.claims("b", took_s=0.5)
    scene.now = 2.0
    scene.is_served("a")
    scene.is_served("a")
    assert scene.faults() == []
    scene.is_served("b")
    assert len(scene.faults()) == 1


def test_a_server_that_is_killed_soon_may_not_know_who_has_a_name() -> None:
    scene = Scene()
    scene.claims("a")
    scene.claims("b")
    scene.excuses.add("kill_server", scene.now + 0.1, 1.0)
    scene.is_served("a")
    assert scene.faults() == []
