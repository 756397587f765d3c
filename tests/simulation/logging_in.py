"""Clients that log in with tokens: some may see what is in the vault, and others may not."""

import asyncio
import random
from typing import Final

from tests.simulation.actors import PTP, Plan, Publisher, Receiver
from tests.simulation.judges.deliveries import Deliveries
from tests.simulation.judges.logins import Logins
from tests.simulation.oracle import Oracle
from tests.simulation.session import CONNECT, OF_ANOTHER, OF_NOBODY, SUBSCRIBE, Attempt, Session
from tests.simulation.talker import Denied, Lost, Message, Talker, reply_to
from tests.simulation.tokens import CLAIM, INSIDERS, SQUARE, VAULT, WARNING_S, Issuer, Pass

_LOGIN = "/service/login"
_PAUSE_S = 0.5
# For how long tokens of insiders are good, and how many of them are renewed in time.
_LIFETIMES_S, _RENEWS = (3.0, 8.0, 24.0), 0.7
# How often the next token gives the right in the other way.
_CHANGES = 0.2
# How often an insider tries a wrong token before it begins, and another one's behind a connect.
_WRONG, _SHOWS_ANOTHER = 0.2, 0.05
# What is due.
_NO_LOGIN, _NOT_ITS_NAME, _NOT_ITS_LOGIN = "handshake_denied", "session_name_denied", "login_denied"
_NOT_TO_SEE, _NOT_TO_SAY = "subscribe_denied", "publish_denied"
_PATTERNS = (VAULT, "/vault/*", "/vault/**", "/**")
_SPEAKS: Final = 0.5
# How often an outsider has cookies when it takes a session.
_HAS_COOKIES: Final = 0.5


class Entrance:
    """Gives insiders and outsiders their tokens, good ones and wrong ones."""

    def __init__(self, issuer: Issuer, truth: Logins) -> None:
        self._issuer = issuer
        self.truth = truth
        # The sessions of insiders, by their ids.
        self.ids: dict[str, str] = {}
        # What their tokens say.
        self._claims: dict[str, Message] = {}

    def of_insider(self, name: str) -> Pass:
        """Return a token that gives the right to the vault, by itself or by its group."""
        if name not in self._claims or random.random() < _CHANGES:
            self._claims[name] = random.choice(({"groups": [INSIDERS]}, {"may": CLAIM}))
        return self._issuer.issue(name, random.choice(_LIFETIMES_S), **self._claims[name])

    def of_outsider(self, name: str) -> Pass:
        """Return a token that proves who somebody is, and gives no right."""
        return self._issuer.issue(name, max(_LIFETIMES_S))

    def wrong(self, name: str) -> Pass:
        """Return a token that proves nothing."""
        issuer, life_s = self._issuer, max(_LIFETIMES_S)
        wrong = (
            lambda: issuer.forged(name, life_s, groups=[INSIDERS]),
            lambda: issuer.unsealed(name, life_s, groups=[INSIDERS]),
            lambda: issuer.former(name, groups=[INSIDERS]),
            lambda: issuer.issue(name, life_s, groups=[INSIDERS], aud="others"),
        )
        return random.choice(wrong)()

    def keeper(self, name: str, plan: Plan, oracle: Oracle) -> Publisher:
        """Make somebody who publishes in the vault."""
        return Publisher(
            *(name, plan, oracle), channels=(VAULT,), log_in=lambda: self.of_insider(name)
        )


class Insider(Receiver):
    """Receives what is published in the vault, with tokens that end soon."""

    def __init__(
        self, name: str, plan: Plan, oracle: Oracle, deliveries: Deliveries, entrance: Entrance
    ) -> None:
        super().__init__(
            *(name, plan, oracle, deliveries), is_named=True, log_in=lambda: self._log_in()
        )
        self._entrance = entrance
        self._truth = entrance.truth
        self._channels = [VAULT]
        # The token that it has sent last.
        self._pass = Pass("", 0.0)
        self._renews = False

    def _log_in(self) -> Pass:
        self._renews = random.random() < _RENEWS
        self._pass = self._entrance.of_insider(self.name)
        return self._pass

    async def _begin(self) -> None:
        if random.random() < _WRONG:
            await self._try_in_vain()
        await super()._begin()
        self._entrance.ids[self.name] = self._session.client_id

    async def _try_in_vain(self) -> None:
        try:
            await self._session.begin(due=_NO_LOGIN, shows=self._entrance.wrong(self.name))
        except Denied as denied:
            self._truth.refused(denied)

    async def _connect(self) -> None:
        ends_soon = self._pass.ends_at < self._truth.now() + 2 * WARNING_S
        if ends_soon and self._renews:
            await self._renew()
        await super()._connect()
        if random.random() < _SHOWS_ANOTHER and not self._session.has_one_connection:
            await self._show_another()

    async def _renew(self) -> None:
        """Get a newer token, and tell the server before the other one ends."""
        self._log_in()
        await self._session.send(_LOGIN, data={}, shows=self._pass)
        self._truth.renewed()

    async def _show_another(self) -> None:
        """Be another user of the same browser for one request: it is not in this session."""
        try:
            with self._session.showing(self._entrance.of_outsider("stranger")):
                await self._session.send(_LOGIN, data={}, due=OF_ANOTHER)
        except Denied as denied:
            self._truth.refused(denied)

    def _take(self, event: Message) -> None:
        if event["channel"] == _LOGIN:
            self._truth.warned()
        elif self._truth.may_have(self.name, event["data"], self._pass.ends_at):
            super()._take(event)


class Outsider:
    """Tries whatever it has no right to, and goes on with what it may do."""

    def __init__(self, name: str, plan: Plan, entrance: Entrance) -> None:
        self._name = name
        self._plan = plan
        self._entrance = entrance
        self._truth = entrance.truth
        # Half of them have a name.
        self._session = Session(
            plan.manners,
            f"{name}/1" if name.endswith("0") else "",
            take=self._take,
            log_in=lambda: entrance.of_outsider(name),
        )
        self._poster = Talker(plan.manners.doors, "/publish")
        self._serial = 0

    async def run(self) -> None:
        """Try until the plan is over, and listen for ever."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._try_all())
            group.create_task(self._session.listen(_PAUSE_S, self._begin))

    async def _begin(self) -> None:
        await self._session.begin()
        await self._session.send(SUBSCRIBE, subscription=SQUARE)

    async def _try_all(self) -> None:
        tries = (
            *(self._see, self._say, self._say_to_somebody, self._say_without_session),
            *(self._come_in, self._take_a_name, self._take_a_session, self._take_a_login),
        )
        while not self._plan.is_over:
            if self._session.client_id:
                try:
                    await random.choice(tries)()
                    await self._speak()
                except Denied as denied:
                    self._truth.refused(denied)
                except Lost:
                    # It tries something else.
                    pass
            await asyncio.sleep(_PAUSE_S * random.random())

    # What it may not do

    async def _see(self) -> None:
        await self._session.send(SUBSCRIBE, subscription=random.choice(_PATTERNS), due=_NOT_TO_SEE)

    async def _say(self) -> None:
        await self._session.send(VAULT, data=self._stolen(), due=_NOT_TO_SAY)

    async def _say_to_somebody(self) -> None:
        content = {"destinations": [self._victim()], "content": self._stolen()}
        await self._session.send(PTP, data=content, due=_NOT_TO_SAY)

    async def _say_without_session(self) -> None:
        """Publish with a token alone."""
        manners, talker = self._plan.manners, self._poster
        shown = self._entrance.of_outsider(self._name)
        talker.token = shown.token
        attempt = Attempt(
            *(self._name, "", VAULT, talker.door[0], manners.witness.now()),
            due=_NOT_TO_SAY,
            login_ends_at=shown.ends_at,
        )
        manners.witness.begins(attempt)
        try:
            message = {"channel": VAULT, "data": self._stolen()}
            found = await talker.ask([message], limit_s=manners.answer_s)
            manners.witness.answered(attempt, reply_to(VAULT, found))
        except (Lost, Denied) as fault:
            manners.witness.failed(attempt, fault)
            raise

    async def _come_in(self) -> None:
        other = Session(self._plan.manners)
        await other.begin(due=_NO_LOGIN, shows=self._entrance.wrong(self._name))

    async def _take_a_name(self) -> None:
        other = Session(self._plan.manners, f"{self._victim()}/1")
        await other.begin(due=_NOT_ITS_NAME, shows=self._entrance.of_outsider(self._name))

    async def _take_a_session(self) -> None:
        """Use the id of a session, with cookies of its own or none, and its own token."""
        other, due = Session(self._plan.manners), OF_NOBODY
        if random.random() < _HAS_COOKIES:
            await other.begin(shows=self._entrance.of_outsider(self._name))
            due = OF_ANOTHER
        if other.has_one_connection:
            # A program needs no cookie for a socket.
            return
        other.client_id = self._entrance.ids.get(self._victim(), "")
        if other.client_id:
            channel = random.choice((CONNECT, _LOGIN))
            await other.send(channel, connectionType="long-polling", data={}, due=due)

    async def _take_a_login(self) -> None:
        other = self._entrance.of_insider(self._victim())
        await self._session.send(_LOGIN, data={}, due=_NOT_ITS_LOGIN, shows=other)

    # What it may do

    async def _speak(self) -> None:
        # Its session may have ended while it tried something else.
        if random.random() < _SPEAKS and self._session.client_id:
            await self._session.send(SQUARE, data={"said": self._serial})

    def _take(self, event: Message) -> None:
        if event["channel"] == _LOGIN:
            self._truth.warned()
        else:
            self._truth.seen(self._name, event["channel"])

    def _victim(self) -> str:
        return random.choice([*self._entrance.ids] or ["insider0"])

    def _stolen(self) -> Message:
        self._serial += 1
        return self._truth.forbidden(f"{self._name}-{self._serial}")
