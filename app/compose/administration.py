"""What operators need: their tokens, their rights over Bayeux, and the HTTP API."""

import asyncio
import logging
import socket
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version
from typing import TYPE_CHECKING

from app.bayeux.registry import LiveRegistry, Process
from app.bayeux.replaying import Replaying
from app.compose.storage import Storage
from app.compose.tasks import cancel
from app.settings import Settings
from app.store.audit import Audit
from app.store.journal_frames import JournalFrames
from app.store.letter_upkeep import LetterUpkeep
from app.store.letters import Letters
from app.store.pipeline_results import PipelineResults
from app.store.reader import open_reader
from app.store.replays import Replays
from app.web.admin.application import make_admin
from app.web.admin.feed import Feed
from app.web.admin.figures import FigureDesk
from app.web.admin.live import Live
from app.web.admin.live_sights import Sources
from app.web.admin.patience import Patience
from app.web.admin.throttle import STRANGERS, Throttle
from app.web.admin.tokens import Role, Tokens
from app.web.cookies import BrowserCookie
from app.web.endpoint import Endpoint
from extensions.operators import Operators

if TYPE_CHECKING:
    from aiohttp import web

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Administration:
    """The parts that go on while the server runs."""

    application: "web.Application"
    replays: Replays


def make_administration(
    settings: Settings,
    stack: AsyncExitStack,
    endpoint: Endpoint,
    storage: Storage,
    tokens: Tokens,
) -> Administration:
    """Install the operators' extension, and make the API over the running server."""
    bayeux, clock = endpoint.bayeux, endpoint.clock
    store, node = storage.store, bayeux.node
    redis = open_reader(storage.url)
    stack.push_async_callback(redis.aclose)
    registry = partial(LiveRegistry, bayeux, _process(settings, node.now_ms()))
    letters = Letters(store, redis, time.time_ns)
    audit = Audit(storage.line, redis, store.keys)
    replays = Replays(
        store,
        letters.search,
        redis,
        receivers=Replaying(bayeux),
        audit=audit,
        new_id=lambda: f"{node.stamp():019d}",
    )
    stack.push_async_callback(replays.close)
    patience = Patience(bayeux, clock)
    stack.push_async_callback(patience.close)
    desk = FigureDesk(bayeux, clock=clock, version=version("holdfast"), letters=letters.standing)
    stack.push_async_callback(cancel, asyncio.create_task(Feed(bayeux, desk, clock).run()))
    operations = Live(
        bayeux,
        clock=clock,
        registry=registry,
        letters=letters,
        letter_age_ms=settings.dead_letter_age,
        replays=replays,
        audit=audit,
        patience=patience,
        sources=Sources(
            desk,
            JournalFrames(redis, store.keys),
            PipelineResults(redis, store.keys),
            version=version("holdfast"),
            keeps_journal=settings.journal,
        ),
    )
    operators = Operators(
        bayeux,
        role_of=partial(_role_of, tokens),
        warrant_of=lambda role: tokens.warrant(Role[role.upper()]),
        guess=Throttle(STRANGERS).take,
        registry=registry,
        note=audit.note,
        wait=patience.wait,
    )
    bayeux.extend(operators)
    upkeep = LetterUpkeep(letters, store.letter_room, age_s=settings.dead_letter_age / 1000)
    stack.push_async_callback(cancel, asyncio.create_task(upkeep.run()))
    return Administration(make_admin(operations, tokens, clock, _feed_of(endpoint)), replays)


def _feed_of(endpoint: Endpoint) -> Endpoint:
    """The same server for the console, whose sessions are nobody else's: with a cookie of its own.

    Without the token it opens nothing. It is not for TLS alone: a tunnel ends without.
    """
    cookie = BrowserCookie("HOLDFAST_CONSOLE", path="/admin", same_site="Strict")
    return replace(endpoint, options=replace(endpoint.options, cookie=cookie))


def _process(settings: Settings, started_ms: int) -> Process:
    port = settings.port if settings.unix is None else None
    return Process(version("holdfast"), started_ms, socket.gethostname(), port)


def _role_of(tokens: Tokens, token: str) -> str | None:
    role = tokens.role(token)
    return None if role is None else role.title
