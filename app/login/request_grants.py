"""The rights of requests without a session: by their login, or by a ticket."""

import time
from collections.abc import Callable, Sequence
from typing import Final

from holdfast.bayeux.wire.login import Login
from holdfast.bayeux.wire.operation import Operation
from holdfast.delivery.basics.channels import covers
from holdfast.login.rights_file import RightsFile
from holdfast.login.rules import RuleGrants

# What a ticket may allow.
_READING: Final = (Operation.SUBSCRIBE, Operation.REPLAY)


class RequestGrants:
    """The rights of a request, for as long as its login is valid.

    Args:
        in_force: Returns the rights file now in force.
        channels: Those that a ticket names; None if the request has a login itself.
        ends_s: When the ticket ends; by default, when the login does.
    """

    def __init__(
        self,
        in_force: Callable[[], RightsFile],
        login: Login,
        grants: RuleGrants,
        *,
        channels: Sequence[str] | None = None,
        ends_s: float | None = None,
    ) -> None:
        self._in_force, self.login, self._grants = in_force, login, grants
        self._channels = channels
        self.is_ticket = channels is not None
        self.subject, self.ends_s = login.subject, login.expires_s if ends_s is None else ends_s

    @property
    def of_login(self) -> RuleGrants:
        """The rights of the login, without a ticket's limits."""
        return self._grants

    @property
    def rules(self) -> RightsFile:
        """The rights now in force."""
        return self._in_force()

    def allows(self, operation: Operation, channel: str) -> bool:
        """Return whether the login is valid and allows the operation."""
        if self.ends_s <= time.time() or self.rules.revoked.includes(self.login):
            return False
        return self._is_named(operation, channel) and self._grants.allows(operation, channel)

    def _is_named(self, operation: Operation, channel: str) -> bool:
        if self._channels is None:
            return True
        return operation in _READING and any(covers(each, channel) for each in self._channels)
