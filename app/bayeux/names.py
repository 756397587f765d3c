"""Named sessions: by their names, by subject, and how many each browser and address has."""

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.bayeux.sessions import Session


class Holder(NamedTuple):
    """Where the client of a session came from when it asked for the name."""

    browser: str | None
    # As limits count addresses; empty if it is not counted.
    network: str


class Names:
    """Finds named sessions; whatever it is asked costs the same however many there are."""

    def __init__(self) -> None:
        self._by_key: dict[str, Session] = {}
        self._by_subject: dict[str, dict[str, Session]] = {}
        self._holders: dict[str, Holder] = {}
        # How many names each has.
        self.of_browser: Counter[str] = Counter()
        self.of_network: Counter[str] = Counter()

    def get(self, key: str) -> "Session | None":
        return self._by_key.get(key)

    def of_subject(self, subject: str) -> "Sequence[Session]":
        return list(self._by_subject.get(subject, {}).values())

    def add(self, session: "Session") -> None:
        key = session.key
        self._by_key[key] = session
        self._by_subject.setdefault(session.subject, {})[key] = session
        self.hold(session)

    def hold(self, session: "Session") -> None:
        """The name is its present client's from now on."""
        self._release(session.key)
        holder = Holder(session.browser, session.caller.network)
        self._holders[session.key] = holder
        if holder.browser is not None:
            self.of_browser[holder.browser] += 1
        if holder.network:
            self.of_network[holder.network] += 1

    def remove(self, session: "Session") -> None:
        """Forget the session, if it has a name."""
        key = session.key
        if self._by_key.get(key) is not session:
            return
        del self._by_key[key]
        siblings = self._by_subject[session.subject]
        del siblings[key]
        if not siblings:
            del self._by_subject[session.subject]
        self._release(key)

    def _release(self, key: str) -> None:
        holder = self._holders.pop(key, None)
        if holder is None:
            return
        for counts, of in ((self.of_browser, holder.browser), (self.of_network, holder.network)):
            if of:
                counts[of] -= 1
                if not counts[of]:
                    del counts[of]
