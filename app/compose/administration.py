"""Sets up the administration: tokens, operators' rights in Bayeux, and the HTTP API."""

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from holdfast.bayeux.api import ServerApi
from holdfast.bayeux.commands.running import Commands
from holdfast.bayeux.server import Bayeux, far_parts_of
from holdfast.bayeux.sessions.replaying import Replaying
from holdfast.bayeux.state.server_state import ServerState
from holdfast.compose.alerts import ReadAgain, alert_limits
from holdfast.compose.operations import Operated
from holdfast.compose.placement import Placement
from holdfast.compose.storage import Storage
from holdfast.compose.token_watch import begin_token_watch
from holdfast.distribution import release
from holdfast.extensions.operators import Operators, RunAnywhere
from holdfast.settings import Settings
from holdfast.store.audit import Audit
from holdfast.store.framing.journal_frames import JournalFrames
from holdfast.store.letters.administration import Letters
from holdfast.store.letters.search import LetterSearch
from holdfast.store.letters.upkeep import LetterUpkeep
from holdfast.store.links.reader import Reader
from holdfast.store.past_figures import PastFigures
from holdfast.store.pipeline_results import PipelineResults
from holdfast.store.replays.control import Replays
from holdfast.store.store import Store
from holdfast.supervisor.control import Ends
from holdfast.web.admin.alert_watch import AlertWatch
from holdfast.web.admin.alerts import Alerts
from holdfast.web.admin.application import OpenRequests, make_admin
from holdfast.web.admin.changes import RunningServer, change
from holdfast.web.admin.feed import Feed
from holdfast.web.admin.figure_keeper import FigureKeeper
from holdfast.web.admin.figure_readings import FigureReadings, OwnFigures
from holdfast.web.admin.figures import LiveFigures
from holdfast.web.admin.request_keys import GIVEN
from holdfast.web.admin.routing import Handlers, Once
from holdfast.web.admin.tallying import Tallying
from holdfast.web.admin.throttle import STRANGERS, Throttle
from holdfast.web.admin.tokens import Tokens
from holdfast.web.answering.endpoint import Endpoint
from holdfast.web.http.cookies import BrowserCookie
from holdfast.web.scheduling.speaking import until_speaking
from holdfast.web.tasks import run_until_closed

if TYPE_CHECKING:
    from aiohttp import web

    from holdfast.cluster.shards import Shards
    from holdfast.compose.forwarding import Forwarding
    from holdfast.compose.joint_administration import JointAdministration
    from holdfast.compose.login import InstalledLogin
    from holdfast.login.extension import Logins
    from holdfast.store.replays.moving import IsOver, Moving
    from holdfast.web.admin.shards import ShardViews


@dataclass(frozen=True, slots=True)
class Administered:
    """What listeners serve of it."""

    application: "web.Application"
    alerts: Alerts
    # What it does with other workers, if there are any.
    joint: "JointAdministration | None"
    # Proves logins of requests without a session; None if none is required.
    logins: "Logins | None"


@dataclass(frozen=True, slots=True)
class Administration(Administered):
    """The parts that run for as long as the server."""

    letters: LetterSearch
    replays: Replays
    # What this process measures of itself, and the figures of the past.
    own: OwnFigures
    figures: FigureKeeper
    read_again: ReadAgain


def make_administration(
    settings: Settings,
    stack: AsyncExitStack,
    endpoint: Endpoint,
    server: ServerApi,
    storage: Storage,
    tokens: Tokens,
    login: "InstalledLogin | None",
    placement: Placement,
    homes: "Shards | None",
    forwarding: "Forwarding | None",
    ends: Callable[[], Mapping[int, Ends]],
    own: OwnFigures,
) -> Administration:
    """Install the operators' extension and build the API of the running server."""
    bayeux, clock = endpoint.bayeux, endpoint.clock
    state, store, node = bayeux.state, storage.store, bayeux.state.node

    def new_id() -> str:
        return f"{node.stamp():019d}"

    reader = Reader(storage.primary)
    stack.callback(reader.close)
    letters, audit = Letters(store, reader, time.time_ns), Audit(store, reader)
    receivers = Replaying(
        state.hub,
        state.sessions,
        work=state.work,
        node=node,
        notices=state.notices,
        clock=clock,
        homes=state.homes,
    )
    replays = Replays(
        store,
        letters,
        reader,
        receivers=receivers,
        audit=audit,
        new_id=new_id,
        given_id=GIVEN.get,
        make_moving=_make_moving(bayeux, store, letters, receivers),
    )
    stack.push_async_callback(replays.close)
    alerts = Alerts()
    figures = LiveFigures(
        state,
        alerts=alerts,
        clock=clock,
        version=release(),
        letters=letters.search.statistics,
    )
    upkeep = LetterUpkeep(
        letters, store.letter_quota, storage.has_excess, age_s=settings.dead_letter_age / 1000
    )
    run_until_closed(stack, upkeep.run())
    running = RunningServer(
        bayeux.life,
        clock,
        audit,
        version=release(),
        letter_age_ms=settings.dead_letter_age,
        keeps_journal=settings.journal,
    )
    tallying = Tallying(state, asyncio.get_running_loop().time)
    away_s = dict if forwarding is None else forwarding.away_s
    results = PipelineResults(reader, store.keys)
    frames = JournalFrames(reader, store.keys, placement.node(settings.node))
    keeper = _keeper(bayeux, PastFigures(store, reader), tallying, replays, own)
    read_again = ReadAgain(login.files if login else ())
    alert_watch = AlertWatch(
        *(running, tallying, alerts, alert_limits(settings, read_again)),
        results=results,
        frames=frames,
        away_s=away_s,
        replicas=lambda: "" if storage.replicas is None else storage.replicas.complaint,
        files=read_again.faults,
    )
    if (replicas := storage.replicas) is not None:
        replicas.on_change = alert_watch.replicas_changed
        run_until_closed(stack, replicas.watch(lambda: store.is_available))
    run_until_closed(stack, alert_watch.run())
    shards = partial(_shard_views, state, placement, ends, figures.started, forwarding)
    operated = Operated(
        *(running, storage, letters, replays, figures, tallying, alerts, shards, results, frames),
        *(keeper, placement.number, None if forwarding is None else forwarding.all_hosts),
        partial(until_speaking, endpoint.right),
    )
    alone = Once(operated.handlers)
    joint = _joint(placement, endpoint, alone, new_id, homes, forwarding, ends)
    shown = figures if joint is None else joint.figures(figures)
    feed = Feed(shown, state.channels, state.hub, node)
    run_until_closed(stack, feed.run())
    run_anywhere = None if joint is None else joint.run_anywhere
    server.extend(_operators(server, tokens, Commands(bayeux.life, clock), audit, run_anywhere))
    by_login = None if login is None else login.logins.operator
    opened = OpenRequests(tokens)
    handlers = alone if joint is None else joint.handlers
    admin = make_admin(handlers, tokens, clock, feed_of(endpoint), by_login, opened)
    read_again.add(begin_token_watch(settings.data, tokens, server, opened.end_invalid, stack))
    return Administration(
        *(admin, alerts, joint, login.logins if login else None),
        *(letters.search, replays, own, keeper),
        read_again=read_again,
    )


def _keeper(
    bayeux: Bayeux, past: PastFigures, tallying: Tallying, replays: Replays, own: OwnFigures
) -> FigureKeeper:
    readings = FigureReadings(bayeux.state, own, lambda: replays.begun)
    node = bayeux.state.node
    return FigureKeeper(
        *(bayeux.state, past, readings, tallying),
        wall_s=lambda: node.now_ms() / 1000,
        clock=asyncio.get_running_loop().time,
    )


def _shard_views(
    state: ServerState,
    placement: Placement,
    ends: Callable[[], Mapping[int, Ends]],
    started: int,
    forwarding: "Forwarding | None",
) -> "ShardViews":
    # Few servers show them.
    from holdfast.web.admin.shards import ShardViews

    own, others = placement.number, tuple(placement.others)
    if forwarding is None:
        return ShardViews(state, own, others, ends, started, dict, dict)
    away_s, hosts = forwarding.away_s, forwarding.hosts_of_shards
    return ShardViews(state, own, others, ends, started, away_s, hosts)


def _make_moving(
    bayeux: Bayeux, store: Store, letters: Letters, receivers: Replaying
) -> "Callable[[IsOver], Moving] | None":
    """Return what lets replays reach the sessions of other shards, if there are any."""
    if bayeux.far is None:
        return None
    # A server alone need not load it.
    from holdfast.store.replays.moving import Moving

    _, homes, others = far_parts_of(bayeux).neighbours

    def make(is_over: "IsOver") -> Moving:
        return Moving(
            *(store, letters, receivers, homes.others, bayeux.state.calls),
            is_away=others.is_away,
            is_over=is_over,
        )

    return make


def _joint(
    placement: Placement,
    endpoint: Endpoint,
    own: Handlers,
    new_id: Callable[[], str],
    homes: "Shards | None",
    forwarding: "Forwarding | None",
    ends: Callable[[], Mapping[int, Ends]],
) -> "JointAdministration | None":
    if homes is None or forwarding is None:
        return None
    from holdfast.compose.joint_administration import JointAdministration

    return JointAdministration(
        *(placement.number, forwarding, own, endpoint, homes, new_id),
        lambda shard: ends().get(shard, Ends()).times,
    )


def _operators(
    server: ServerApi,
    tokens: Tokens,
    commands: Commands,
    audit: Audit,
    run_anywhere: RunAnywhere | None,
) -> Operators:
    return Operators(
        server,
        role_of=partial(_role_of, tokens),
        warrant_of=tokens.warrant,
        guess=Throttle(STRANGERS.part(server.shards)).take,
        commands=commands,
        change=partial(change, audit),
        run_anywhere=run_anywhere,
    )


def feed_of(endpoint: Endpoint) -> Endpoint:
    """Return the same server for the console, with another cookie: its sessions are separate.

    The cookie opens nothing without a token. It is not restricted to TLS, because operators may
    use tunnels that end without TLS.
    """
    settings = Settings(
        browser_cookie_name="HOLDFAST_CONSOLE",
        browser_cookie_path="/admin",
        browser_cookie_same_site="Strict",
    )
    return replace(endpoint, cookie=BrowserCookie(settings), host_cookie=None)


def _role_of(tokens: Tokens, token: str) -> str | None:
    role = tokens.role(token)
    return None if role is None else role.title
