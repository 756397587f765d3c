"""Clients of the store, for all kinds of URLs: a server, a cluster, or Sentinels."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import SplitResult, parse_qsl, urlencode, urlsplit, urlunsplit

from holdfast.pipeline.failures import PipelineFailed

if TYPE_CHECKING:
    from redis import Redis

_TIMEOUT_S = 10.0
_RETRIES = 3
_LIMITS: dict[str, Any] = {"socket_timeout": _TIMEOUT_S, "socket_connect_timeout": _TIMEOUT_S}
_PORT, _SENTINEL_PORT = 6379, 26379
# Options of the URL for the Sentinels, which have their own credentials.
_FOR_SENTINELS = {"sentinel_username": "username", "sentinel_password": "password"}


def connect(url: str) -> "Redis":
    """Return a client with short timeouts. Raises `PipelineFailed`."""
    try:
        return _client(url)
    except ValueError as error:
        # Of urllib and redis-py: no such scheme, or a port that is none.
        words = "that is no store: it is redis://HOST:6379/0, rediss://… or unix:///PATH"
        raise PipelineFailed(f"{_places(url)}: {words} ({error})") from error


def _client(url: str) -> "Redis":
    scheme, _, kind = urlsplit(url).scheme.partition("+")
    with answering(url):
        if kind == "sentinel":
            return _behind_sentinels(urlsplit(url)._replace(scheme=scheme))
        if kind == "cluster":
            return _in_cluster(urlsplit(url)._replace(scheme=scheme))
    client = _at_server(url)
    return _in_cluster(urlsplit(url)) if _is_node(client) else client


@contextmanager
def answering(urls: str) -> Iterator[None]:
    """Turn errors of stores into failures that say what to do."""
    from redis.exceptions import (
        AuthenticationError,
        RedisClusterException,
        RedisError,
        ResponseError,
    )

    try:
        yield
    except AuthenticationError as error:
        words = f"the store refuses the login ({error}): use --redis redis://USER:PASSWORD@HOST"
        raise PipelineFailed(f"{_places(urls)}: {words}") from error
    except ResponseError as error:
        words = f"this is not a store of Holdfast, or it is full: {error}"
        raise PipelineFailed(f"{_places(urls)}: {words}") from error
    except (RedisError, RedisClusterException, OSError) as error:
        words = f"the store does not answer ({error}). Is the server running?"
        raise PipelineFailed(f"{_places(urls)}: {words}") from error


def _at_server(url: str) -> "Redis":
    from redis import Redis
    from redis.backoff import ExponentialBackoff
    from redis.retry import Retry

    return Redis.from_url(url, **_LIMITS, retry=Retry(ExponentialBackoff(), _RETRIES))


def _is_node(client: "Redis") -> bool:
    """Return whether the server is a node of a cluster."""
    from redis.exceptions import RedisError

    try:
        found = client.info("cluster")
    except (RedisError, OSError):
        # If it is away, the first question says so. If this user may not ask, it is hardly a node.
        return False
    return bool(found.get("cluster_enabled"))


def _in_cluster(parts: SplitResult) -> "Redis":
    from redis import cluster

    # This has no types.
    node = cast("Any", cluster.ClusterNode)
    credentials, at, hosts = parts.netloc.rpartition("@")
    first, *others = hosts.split(",")
    client = cluster.RedisCluster(
        url=urlunsplit(parts._replace(netloc=f"{credentials}{at}{first}")),
        startup_nodes=[node(*_host_and_port(each, _PORT)) for each in others],
        require_full_coverage=False,
        **_LIMITS,
    )
    # It has the same methods, and all keys of the store are in one slot.
    return cast("Redis", client)


def _behind_sentinels(parts: SplitResult) -> "Redis":
    from redis import connection, sentinel

    service, _, database = parts.path.strip("/").partition("/")
    credentials, at, hosts = parts.netloc.rpartition("@")
    options = dict(parse_qsl(parts.query))
    own = {name: options.pop(key) for key, name in _FOR_SENTINELS.items() if key in options}
    # These have no types.
    parse, sentinels = cast("Any", connection.parse_url), cast("Any", sentinel.Sentinel)
    given = parse(
        urlunsplit((parts.scheme, f"{credentials}{at}store", database, urlencode(options), ""))
    )
    given.pop("host")
    tls = {name: value for name, value in given.items() if name.startswith("ssl")}
    if given.pop("connection_class", None) is connection.SSLConnection:
        given["ssl"] = tls["ssl"] = True
    found = sentinels(
        [_host_and_port(each, _SENTINEL_PORT) for each in hosts.split(",")],
        sentinel_kwargs={**_LIMITS, **tls, **own},
        **_LIMITS,
        **given,
    )
    return cast("Redis", found.master_for(service))


def _host_and_port(text: str, port: int) -> tuple[str, int]:
    parts = urlsplit(f"//{text}")
    return parts.hostname or "localhost", parts.port or port


def _places(urls: str) -> str:
    """Return the URLs without their passwords."""
    parts = (url.partition("://") for url in urls.split())
    return " ".join(f"{scheme}://{rest.rpartition('@')[2]}" for scheme, _, rest in parts)
