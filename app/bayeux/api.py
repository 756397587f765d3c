"""The interface for extensions, described in docs/how-to/extensions.md."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from holdfast.bayeux.extending.base import ServerExtension
from holdfast.bayeux.extending.error_handlers import ErrorHandlers
from holdfast.bayeux.publish.qos import Qos
from holdfast.bayeux.rights import Authorizer, SecurityPolicy
from holdfast.bayeux.session import Session
from holdfast.bayeux.state.service_channels import ServiceCall, Services
from holdfast.bayeux.wire.caller import Caller
from holdfast.bayeux.wire.codec import Json
from holdfast.bayeux.wire.identity import Identity
from holdfast.bayeux.wire.login import LoginMethod
from holdfast.bayeux.wire.terms import Terms
from holdfast.delivery.basics.node import Node
from holdfast.delivery.basics.notices import NoticeKind
from holdfast.settings import Settings

# Increased when a member below is removed or changes its meaning.
API_VERSION = 2


class SessionApi(Protocol):
    """The members of a session that extensions may use. All others may change in any release."""

    timeout_s: float
    interval_s: float
    broadcast_to_publisher: bool
    deliver_only: bool
    # Data that extensions attach to the session. It lasts until the server stops.
    attributes: dict[str, Any] | None
    # The sender of the current or the last message.
    caller: Caller
    number: int
    # The session name, `client/joe/1`.
    name: str
    # A secret shared by the client and the server.
    client_id: str

    @property
    def subject(self) -> str:
        """The login that the session belongs to: `joe`."""
        ...

    @property
    def is_gone(self) -> bool:
        """Whether the session has ended."""
        ...

    @property
    def has_left(self) -> bool:
        """Whether the session has no client."""
        ...


class SessionsApi(Protocol):
    """All living sessions."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Session]: ...

    def of_subject(self, subject: str) -> Sequence[Session]:
        """Return the sessions of the subject."""
        ...


class RightsApi(Protocol):
    """The rights of sessions."""

    # The policy for the whole server.
    policy: SecurityPolicy

    def add(self, pattern: str, authorizer: Authorizer) -> None:
        """Ask the authorizer about all channels that the pattern matches."""
        ...

    @property
    def judges_handshakes(self) -> bool:
        """Whether a login or a policy decides on handshakes."""
        ...

    def check_name(self, session: Session, subject: str, number: int, handshake: Json) -> None:
        """Raise `Refused` if the client may not be `subject`, or have its session `number`."""
        ...

    def longest_timeout_s(
        self, session: Session, subject: str, number: int, handshake: Json
    ) -> float | None:
        """Return this session's longest timeout, or None for the server's limit."""
        ...


class ServerApi(ABC):
    """The server as extensions see it. Call it only from the event loop's thread."""

    version: ClassVar[int] = API_VERSION

    rights: RightsApi
    services: Services
    error_handlers: ErrorHandlers
    sessions: SessionsApi
    # The server's name and wall clock.
    node: Node
    options: Settings
    # How many there are, this one included. Each admits its part of what one address may do.
    shards: int

    @abstractmethod
    def extend(self, extension: ServerExtension) -> None:
        """Install an extension after the installed ones."""

    @abstractmethod
    def reserve(self, prefix: str) -> None:
        """Allow only the server to publish to channels with this prefix. Call it at start-up."""

    @abstractmethod
    def offer_presence(self, pattern: str) -> None:
        """Let clients with the right see the members of matching channels. Call it at start-up."""

    @abstractmethod
    def offer_requests(self) -> None:
        """Allow clients to send requests and to reply. Call it at start-up."""

    @abstractmethod
    def give_reply_channel(self, session: Session, resumes: str) -> None:
        """Give a new session a reply channel.

        If it takes over a session whose reply channel has the name `resumes`, it keeps that
        channel.
        """

    @property
    @abstractmethod
    def extensions(self) -> Sequence[ServerExtension]:
        """The installed extensions, in order."""

    # Messages

    @abstractmethod
    def publish(
        self, channel: str, data: object, *, lazy_s: float | None = None, qos: Qos | None = None
    ) -> None:
        """Publish to all subscribers. With `lazy_s`, delivery may be delayed by that time.

        Raises `ValueError` if the channel does not allow publishing, or `data` is not JSON.
        """

    @abstractmethod
    def deliver_event(
        self, session: SessionApi, event: Json, *, lazy_s: float | None = None
    ) -> None:
        """Deliver an event to a single session."""

    # Other workers

    @abstractmethod
    def serve_subjects(self, what: str, serve: Callable[[Any], Any]) -> None:
        """Answer what any worker asks about subjects of this one. Call it at start-up.

        `serve` gets what is asked and returns the answer, both as for JSON.
        """

    @abstractmethod
    def ask_about(self, subject: str, what: str, data: object, done: Callable[[Any], None]) -> bool:
        """Ask the worker that has the sessions of a subject, if it is another one.

        Returns whether it is. Then `done` gets the answer in a later turn, or None if there is
        none within some seconds.
        """

    # Sessions

    @abstractmethod
    def end_by_server(self, session: SessionApi) -> None:
        """End a session and inform its client.

        The queue of a durable or named session becomes dead letters. Other queues are discarded.
        """

    @abstractmethod
    def log_out(self, session: SessionApi) -> None:
        """Disconnect a session's client, which may handshake again.

        A named session and its queue wait for it; any other session ends.
        """

    @abstractmethod
    def require_login(self, still_proves: Callable[[Identity, Caller], bool]) -> None:
        """Require sessions to log in. A login allows only the session names of its subject.

        Args:
            still_proves: Returns whether a later request may come from the client with this
                login. Called once for each sender.
        """

    @abstractmethod
    def count_login(self, method: LoginMethod | None) -> None:
        """Count a login, or a failed one if `method` is None."""

    @abstractmethod
    def reauthorize(self, session: SessionApi) -> None:
        """Review the session's rights after they changed, and remove what they no longer cover.

        The review starts when the turn ends. Until it is complete, nothing is handed over.
        """

    @abstractmethod
    def agree(self, session: Session, terms: Terms | None, *, acks: bool) -> None:
        """Set, during the handshake, how entries are settled and what failures mean."""

    # Acks and verdicts

    @abstractmethod
    def acknowledge(self, session: Session, batch: int, now: float) -> None:
        """Ack all batches of the session up to this one."""

    @abstractmethod
    def judge_by_call(self, call: ServiceCall) -> None:
        """Apply the verdicts in a call while its service handles it."""

    @abstractmethod
    def ignore_verdicts(self, count: int) -> None:
        """Count verdicts that matched no entry."""

    # The store and the log

    @property
    @abstractmethod
    def is_store_available(self) -> bool:
        """Whether the store takes changes now."""

    @abstractmethod
    def when_kept(self, step: Callable[[float], None]) -> None:
        """Call `step` with the time once the store has all earlier changes."""

    @abstractmethod
    def notice(self, kind: NoticeKind, who: str, what: str) -> None:
        """Log a notice for operators. Repeats are counted."""


if TYPE_CHECKING:
    _session: type[SessionApi] = Session
