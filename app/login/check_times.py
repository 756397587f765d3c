"""The times at which the logins of sessions are checked; `extension` ends those that are over."""

import heapq
from collections.abc import Iterator

from holdfast.bayeux.session import Session

# The first sweep comes when there are more items than this.
_FEW = 64


class CheckTimes:
    """The moment of each session at which its login is checked next."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int]] = []
        # The sessions by number, with their moments; other moments in the heap are outdated.
        self._watched: dict[int, tuple[float, Session]] = {}
        self._sweep_at = _FEW

    def __len__(self) -> int:
        return len(self._heap)

    def watch(self, session: Session, at_s: float) -> None:
        """Set the session's moment."""
        self._watched[session.number] = (at_s, session)
        heapq.heappush(self._heap, (at_s, session.number))
        if len(self._heap) > self._sweep_at:
            self._sweep()

    def _sweep(self) -> None:
        """Remove ended sessions and outdated moments: as many may come before the next time."""
        self._watched = {
            number: watched for number, watched in self._watched.items() if not watched[1].is_gone
        }
        self._heap = [(at_s, number) for number, (at_s, _) in self._watched.items()]
        heapq.heapify(self._heap)
        self._sweep_at = max(_FEW, 2 * len(self._heap))

    def due(self, now_s: float) -> Iterator[Session]:
        """Yield the living sessions whose moment has come, and stop watching them."""
        while self._heap and self._heap[0][0] <= now_s:
            at_s, number = heapq.heappop(self._heap)
            watched = self._watched.get(number)
            if watched is None or watched[0] != at_s:
                continue
            del self._watched[number]
            if not watched[1].is_gone:
                yield watched[1]
