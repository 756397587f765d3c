"""Named sessions: found by name and subject, and counted by browser and address."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from holdfast.bayeux.session import Session
from holdfast.delivery.queues.receivers import WEBHOOKS


class NameOwner(NamedTuple):
    """The browser and the address that a session name counts for."""

    browser: str | None
    # The network that limits count by; empty if the address is not counted.
    network: str


class NamedSessions:
    """Finds named sessions. The cost does not depend on how many there are."""

    def __init__(self) -> None:
        self._by_key: dict[str, Session] = {}
        self._by_subject: dict[str, dict[str, Session]] = {}
        # The sessions of the server itself, by key.
        self.of_server: dict[str, Session] = {}
        self._owners: dict[str, NameOwner] = {}
        # How many names each browser or address has.
        self.of_browser: Counter[str] = Counter()
        self.of_network: Counter[str] = Counter()

    def get(self, key: str) -> Session | None:
        return self._by_key.get(key)

    def of_subject(self, subject: str) -> Sequence[Session]:
        return list(self._by_subject.get(subject, {}).values())

    def add(self, session: Session) -> None:
        key = session.key
        self._by_key[key] = session
        if key.startswith(WEBHOOKS):
            self.of_server[key] = session
        self._by_subject.setdefault(session.subject, {})[key] = session
        self.claim(session)

    def claim(self, session: Session) -> None:
        """Count the session's name for its present client."""
        self._release(session.key)
        owner = NameOwner(session.identity.browser, session.caller.network)
        self._owners[session.key] = owner
        if owner.browser is not None:
            self.of_browser[owner.browser] += 1
        if owner.network:
            self.of_network[owner.network] += 1

    def remove(self, session: Session) -> None:
        """Remove the session, if it has a name."""
        key = session.key
        if self._by_key.get(key) is not session:
            return
        del self._by_key[key]
        self.of_server.pop(key, None)
        siblings = self._by_subject[session.subject]
        del siblings[key]
        if not siblings:
            del self._by_subject[session.subject]
        self._release(key)

    def _release(self, key: str) -> None:
        owner = self._owners.pop(key, None)
        if owner is None:
            return
        for counts, of in ((self.of_browser, owner.browser), (self.of_network, owner.network)):
            if of:
                counts[of] -= 1
                if not counts[of]:
                    del counts[of]
