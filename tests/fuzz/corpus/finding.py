"""What a past finding is: what was sent, and what is to be answered."""

from dataclasses import dataclass
from typing import Any

import orjson

# As long as the real one: it takes the place when it is known.
CLIENT = "0123456789abcdef0123456789abcdef"
# Who mutates what is longer does little else.
_LONGEST_SEED = 16 * 1024

DONE = ""
MALFORMED = "400::request_malformed"
TOO_LARGE = "413:max_values,65000:request_too_large"
TOO_MANY = "413:max_batch,5000:request_too_large"
UNKNOWN = "402::session_unknown"
REFUSAL = {"seq": 1, "errorCode": "user.update.error"}
CONNECT = {"connectionType": "long-polling", "advice": {"timeout": 0}}


@dataclass(frozen=True, slots=True)
class Finding:
    """Bytes that once did harm; `expected` means what the table that has it says."""

    why: str
    sent: bytes
    expected: str | int

    @property
    def is_seed(self) -> bool:
        """Whether it is short enough for others to be made of it."""
        return len(self.sent) <= _LONGEST_SEED


def seeds(findings: list[Finding]) -> list[bytes]:
    """What fuzzers begin with."""
    return [finding.sent for finding in findings if finding.is_seed]


def text(channel: object, **fields: Any) -> bytes:
    """One message of the client."""
    return orjson.dumps([{"channel": channel, "clientId": CLIENT, **fields}])
