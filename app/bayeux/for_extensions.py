"""The implementation of the interface for extensions."""

from collections.abc import Callable, Sequence
from typing import Any, cast

from holdfast.bayeux.api import ServerApi, SessionApi
from holdfast.bayeux.extending.base import ServerExtension
from holdfast.bayeux.publish.qos import Qos
from holdfast.bayeux.server import Bayeux
from holdfast.bayeux.session import Session
from holdfast.bayeux.sessions.takeover import log_out
from holdfast.bayeux.state.service_channels import ServiceCall
from holdfast.bayeux.wire.caller import Caller
from holdfast.bayeux.wire.codec import Json
from holdfast.bayeux.wire.identity import Identity
from holdfast.bayeux.wire.login import LoginMethod
from holdfast.bayeux.wire.terms import Terms
from holdfast.delivery.basics.notices import NoticeKind


class ForExtensions(ServerApi):
    """Forwards the calls of extensions to the server. Every `SessionApi` is a `Session`.

    Args:
        clock: Returns monotonic seconds, as the server counts them. Extensions also call
            outside of requests, which would carry the time.
    """

    def __init__(self, bayeux: Bayeux, clock: Callable[[], float]) -> None:
        self._bayeux = bayeux
        self._state, self._life = bayeux.state, bayeux.life
        self._publishing, self._requests = bayeux.publishing, bayeux.requests
        self._verdicts = bayeux.verdicts
        self._clock = clock
        self.rights = bayeux.state.rights
        self.services = bayeux.state.services
        self.error_handlers = bayeux.state.error_handlers
        self.sessions = bayeux.state.sessions
        self.node = bayeux.state.node
        self.options, self.shards = bayeux.state.options, bayeux.state.shards

    def extend(self, extension: ServerExtension) -> None:
        self._state.installed.extend(extension)

    def reserve(self, prefix: str) -> None:
        self._state.channels.reserve(prefix)

    def offer_presence(self, pattern: str) -> None:
        self._state.presence.offer(pattern)

    def offer_requests(self) -> None:
        self._state.requests.is_offered = True

    def give_reply_channel(self, session: Session, resumes: str) -> None:
        self._requests.give_channel(session, resumes)

    @property
    def extensions(self) -> Sequence[ServerExtension]:
        return self._state.installed.all

    def publish(
        self, channel: str, data: object, *, lazy_s: float | None = None, qos: Qos | None = None
    ) -> None:
        self._publishing.publish(channel, data, self._clock(), lazy_s=lazy_s, qos=qos)

    def deliver_event(
        self, session: SessionApi, event: Json, *, lazy_s: float | None = None
    ) -> None:
        self._publishing.deliver_event(cast("Session", session), event, lazy_s=lazy_s)

    def serve_subjects(self, what: str, serve: Callable[[Any], Any]) -> None:
        self.services.of_subjects[what] = serve

    def ask_about(self, subject: str, what: str, data: object, done: Callable[[Any], None]) -> bool:
        far = self._bayeux.far
        return far is not None and far.subjects.ask(subject, what, data, done)

    def end_by_server(self, session: SessionApi) -> None:
        self._life.ends.end_by_server(cast("Session", session), self._clock())

    def log_out(self, session: SessionApi) -> None:
        log_out(self._life, cast("Session", session), self._clock())

    def require_login(self, still_proves: Callable[[Identity, Caller], bool]) -> None:
        self._state.rights.require_login(still_proves)

    def count_login(self, method: LoginMethod | None) -> None:
        self._state.counters.logins["failed" if method is None else method.value] += 1

    def reauthorize(self, session: SessionApi) -> None:
        self._life.reauthorizations.reauthorize(cast("Session", session))

    def agree(self, session: Session, terms: Terms | None, *, acks: bool) -> None:
        self._life.agree(session, terms, acks=acks)

    def acknowledge(self, session: Session, batch: int, now: float) -> None:
        self._life.settlement.acknowledge(session, batch, now)

    def judge_by_call(self, call: ServiceCall) -> None:
        self._verdicts.apply_of_call(call)

    def ignore_verdicts(self, count: int) -> None:
        self._state.counters.verdicts_unknown += count

    @property
    def is_store_available(self) -> bool:
        return self._state.store.is_available

    def when_kept(self, step: Callable[[float], None]) -> None:
        self._state.when_kept(step)

    def notice(self, kind: NoticeKind, who: str, what: str) -> None:
        self._state.notices.report(kind, who, what)
