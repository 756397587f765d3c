"""The publishes of sessions that wait for the store, and what waits for them."""

from collections.abc import Callable

from holdfast.bayeux.session import Session


class _Unstored:
    __slots__ = ("count", "steps")

    def __init__(self) -> None:
        self.count = 0
        self.steps: list[Callable[[float], None]] = []


class UnstoredPublishes:
    """Counts the publishes of each session whose replies wait for the store."""

    def __init__(self) -> None:
        self._by_session: dict[Session, _Unstored] = {}

    def count(self, session: Session) -> int:
        """Return how many publishes of the session wait."""
        found = self._by_session.get(session)
        return 0 if found is None else found.count

    def begin(self, session: Session) -> None:
        """Count a publish that begins to wait."""
        self._by_session.setdefault(session, _Unstored()).count += 1

    def end(self, session: Session) -> None:
        """Count a publish that no longer waits. Call `go_on` when its reply is complete."""
        self._by_session[session].count -= 1

    def go_on(self, session: Session, now: float) -> None:
        """Call what waits for the session's publishes, if none waits any longer."""
        found = self._by_session.get(session)
        if found is not None and not found.count:
            del self._by_session[session]
            for step in found.steps:
                step(now)

    def then(self, session: Session, step: Callable[[float], None]) -> None:
        """Call `step` with the time when all publishes that wait now are stored."""
        self._by_session[session].steps.append(step)
