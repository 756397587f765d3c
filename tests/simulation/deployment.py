"""The servers of a simulated deployment: rivals, or shards that clients take for one server."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from holdfast.cluster.shards import Homes, first_map
from holdfast.compose.homes import homes_for
from holdfast.compose.placement import placed
from holdfast.offline.division import Divided, divided
from holdfast.settings import Settings
from holdfast.store.format.deployment import Division
from holdfast.web.admin.tokens import OPERATOR_FILE
from tests.simulation.books import Books
from tests.simulation.cast import ALL_RULES, RULES, Rules
from tests.simulation.embedded import Stores
from tests.simulation.gluttons import LIMITS
from tests.simulation.network import End
from tests.simulation.oracle import Oracle, Publish, bucket_of, shard_of
from tests.simulation.process import Process
from tests.simulation.server import ADMIN_PORT, PORT, Post, Served, settings_of
from tests.simulation.store.groups import Group
from tests.simulation.store_site import StoreSite
from tests.simulation.supervised import LINK_PORT, SupervisedPost, Unit, Worker
from tests.simulation.world import World

_SERVERS = ("10.0.0.1", "10.0.0.2", "10.0.0.3")
# Where no client comes.
_ASIDE = "aside-of-"
_SHARED = "data"
# Where hosts take the links of others.
_HOSTS_PORT = 8443
# How long supervisors may pause before they start servers again.
_RECOVERS_S = 60.0
# Where all shards are, if they have the same clocks.
_MACHINE = "workers"


class Deployment:
    """Knows where servers belong, and what they are told.

    Args:
        count: How many servers there are at first.
        has_shards: Whether each is a shard, and not a rival of the others.
        is_one_machine: Whether all shards have the same clocks.
        poll_s: How long servers hold a connect.
        has_hosts: Whether several machines have the shards.
        has_operators: Whether somebody administers it.
        further: What servers are told besides.
    """

    def __init__(
        self,
        world: World,
        home: Path,
        oracle: Oracle,
        site: StoreSite,
        *,
        count: int,
        has_shards: bool,
        is_one_machine: bool,
        poll_s: float,
        is_supervised: bool = False,
        has_hosts: bool = False,
        has_operators: bool = False,
        further: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        self._world = world
        self._home = home
        self._oracle = oracle
        self._site = site
        self._has_shards = has_shards
        self._is_one_machine = is_one_machine
        self._has_operators = has_operators
        # The machines that have the shards of one deployment; none if one has them all.
        self._hosts = _SERVERS[: world.random.choice((2, 3, 3))] if has_hosts else ()
        self._given: dict[str, Any] = {
            "durability": site.durability,
            "timeout": round(poll_s * 1000),
            "standby": count > 1 and not has_shards,
            "chat": not has_shards,
            **LIMITS,
            **further,
        }
        # What the operator last wanted servers to be told about channels.
        self.rules = RULES
        site.shards = count if has_shards else 1
        self.books = Books(site.keyspace_with, site.shards)
        # The machines with supervisors.
        self.units = [*self._units(count)] if is_supervised else []
        # Where servers are that have none.
        self.posts = [] if self.units else [self._post(number, count) for number in range(count)]
        # Where clients come.
        self.doors = [(each, PORT) for each in self._hosts] or [
            *dict.fromkeys((each.name, PORT) for each in self.places)
        ]
        self._of_bucket = first_map(site.shards).of_bucket
        if has_shards:
            oracle.has_one_speaker = False
            oracle.home_of = self._home_of
        if self._hosts:
            oracle.spoken_for = self._spoken_for
            oracle.leases.speaks = lambda *which: self._spoken_for(*which) is not None

    def settings(self, number: int, host: str, **further: Any) -> Settings:
        """Return what a process at this address is told that has to do with a shard."""
        data, url = self._data_of(host), self._site.url_of(number)
        if self._has_operators:
            further["admin"] = f"{host}:{ADMIN_PORT}"
        if self._hosts:
            further |= {
                "hosts": [f"{each}:{_HOSTS_PORT}" for each in self._hosts],
                "own_host": host,
                # The network has no real TLS.
                **dict.fromkeys(("link_cert", "link_key", "link_ca"), "none.pem"),
            }
        return settings_of(host, data, url, channels=self.rules, **self._given, **further)

    def _data_of(self, host: str) -> Path:
        return self._home / (_SHARED if self._has_shards and not self._hosts else host)

    def token_at(self, host: str) -> str:
        """Return the token of operators at this address; the empty text if there is none yet."""
        path = self._data_of(host) / OPERATOR_FILE
        return path.read_text().strip() if path.exists() else ""

    def _post(self, number: int, count: int, *, is_aside: bool = False) -> Post:
        name = _SERVERS[number]
        host = f"{_ASIDE}{name}" if is_aside else name
        settings = self.settings(number, host, journal=self._world.random.random() < 0.5)
        placement = placed(settings, number, count) if self._has_shards else None
        machine = _MACHINE if self._is_one_machine else name
        return Post(self._world, settings, self._oracle, placement, machine=machine)

    def _units(self, count: int) -> Iterator[Unit]:
        """Yield a machine for all shards, one for each rival, or some that share the shards."""
        journals = self._world.random.random() < 0.5
        workers = count if self._has_shards else 1
        how_many = "shards" if self._hosts else "workers"
        posts: Sequence[SupervisedPost] = ()
        for host in self._hosts or _SERVERS[: 1 if self._has_shards else count]:

            def settings(number: int, host: str = host) -> Settings:
                return self.settings(number, host, journal=journals, **{how_many: workers})

            unit = Unit(
                *(self._world, self._oracle),
                host=host,
                machine=host,
                count=workers,
                settings=settings,
                stores=Stores(self._world, self._site),
                posts=posts,
            )
            if self._hosts:
                posts = unit.posts
            yield unit

    @property
    def places(self) -> Sequence[Served]:
        """Where servers are."""
        if self._hosts:
            return self.units[0].posts
        return [place for unit in self.units for place in unit.posts] or self.posts

    @property
    def has_hosts(self) -> bool:
        """Whether several machines have the shards."""
        return bool(self._hosts)

    @property
    def machines(self) -> Sequence[str]:
        """The addresses between which servers have links."""
        return self._hosts or [place.name for place in self.places]

    def start(self) -> None:
        """Start everything."""
        for unit in self.units:
            unit.start()
        for post in self.posts:
            post.start()

    def let_recover(self) -> None:
        """Let supervisors start all servers again, which takes longer after many ends."""
        posts = [post for unit in self.units for post in unit.posts]
        for post in posts:
            post.crashes = 0
        if posts and not self._given["standby"]:
            self._world.run_until(lambda: all(post.is_serving for post in posts), _RECOVERS_S)

    def _home_of(self, client: str) -> Process | None:
        """Return the server that has the session of a client, whatever its door."""
        return self.places[self._of_bucket[self._oracle.buckets[client]]].process

    def _spoken_for(self, process: Process, end: End) -> int | None:
        """Return the shard of a process if this end leads to its sessions: to a client or a door.

        A door passes on what others say.
        """
        shard = process.shard if isinstance(process, Worker) else None
        if client_id := self._oracle.leases.session_at(end):
            return shard if shard == self._of_bucket[bucket_of(client_id)] else None
        is_link = end.name[1] == _HOSTS_PORT or end.name[1] - LINK_PORT == shard
        return shard if is_link else None

    def stores_of(self, client: str, publish: Publish) -> Sequence[Group] | None:
        """Return the stores that a message to a client needs; None if all shards are in one."""
        if not self._site.has_own:
            return None
        shards = shard_of(publish.id), self._of_bucket[self._oracle.buckets[client]]
        return [self._site.store_of(shard) for shard in shards]

    def home_of_id(self, client_id: str) -> Process | None:
        """Return the server that has the session with this client id."""
        if not self._has_shards:
            return self._oracle.speaker
        return self.places[self._of_bucket[bucket_of(client_id)]].process

    def ends_of(self, shard: int) -> list[float]:
        """Return when servers of a shard have ended, or any server if all are rivals."""
        places = self.places
        if self._has_shards:
            places = places[shard : shard + 1]
        names = {place.process.name for place in places}
        names |= {f"{host}/{shard}" for host in self._hosts}
        return [at for name, at in self._world.ends() if name in names]

    def stands_by(self, machine: str) -> bool:
        """Return whether a machine only refuses: it waits until another ends, or has no shard."""
        if self._hosts:
            return not any(each.name == machine and each.is_serving for each in self.units[0].posts)
        speaker = self._oracle.speaker
        return not self._has_shards and (speaker is None or speaker.name != machine)

    @property
    def division(self) -> Division:
        """How it is divided at first."""
        shards = first_map(self._site.shards)
        return Division(shards.to_json(), self.homes(self.rules).to_json())

    # Dividing it otherwise

    def homes(self, rules: Rules) -> Homes:
        """Return the homes that channels get by these rules."""
        given: dict[str, Any] = {"channels": rules}
        return homes_for(Settings(**given).channels)

    def _divided(self) -> Divided:
        stored = self.books.first()
        return divided(Division(stored.get(b"shards", b""), stored.get(b"homes", b"")))

    def _heed(self, found: Divided) -> None:
        """Tell servers the rules for which this division was made."""
        if found.homes != self.homes(self.rules) and found.count > 1:
            [self.rules] = [each for each in ALL_RULES if self.homes(each) == found.homes]

    def posts_aside(self) -> list[Post]:
        """Make a place for each shard where no client comes."""
        found = self._divided()
        self._heed(found)
        count = found.count
        return [self._post(number, count, is_aside=True) for number in range(count)]

    def serve(self) -> None:
        """Start the servers of all shards that there are now."""
        found = self._divided()
        self._heed(found)
        count, before = found.count, [*self.posts]
        for post in before[count:]:
            post.close()
        for number, post in enumerate(before[:count]):
            post.settings = settings = self.settings(number, post.name)
            post.move(placed(settings, number, count))
        more = [self._post(number, count) for number in range(len(before), count)]
        self.posts[:] = [*before[:count], *more]
        self.doors[:] = [(post.name, PORT) for post in self.posts]
        self._of_bucket = found.map.of_bucket
        self._site.shards = self.books.count = count
        for post in self.posts:
            post.start()
