"""Keys come from where the operator or the issuer's own host says, and from nowhere else."""

import asyncio
import logging
from itertools import pairwise
from pathlib import Path

import orjson
import pytest

from holdfast.login.failures import Unusable
from holdfast.login.key_sources import KeyFile, KeyUrl, at, discovered
from tests.unit.login.signing import ec_key, jwk

ISSUER = "https://id.example.org/realms/main"


async def found(keys: object, *hosts: str) -> str:
    """Where the keys are, if the issuer's document says this."""

    async def fetch(url: str) -> bytes:
        assert url == f"{ISSUER}/.well-known/openid-configuration"
        return orjson.dumps({"issuer": ISSUER, "jwks_uri": keys})

    return await discovered(ISSUER, hosts, fetch)()


@pytest.mark.parametrize(
    "keys",
    [
        *("https://127.0.0.1/keys", "https://localhost/keys", "https://[::1]/keys"),
        *("https://2130706433/keys", "https://169.254.169.254/keys", "https://0/keys"),
        *("http://id.example.org/keys", "http://127.0.0.1/keys", "//127.0.0.1/keys", "/keys"),
        *("file:///etc/passwd", "https://id.example.org:8443/keys", "https://evil.example/keys"),
        *("https://id.example.org@127.0.0.1/keys", "https://id.example.org.evil.example/keys"),
        *("https://keys.example.org@127.0.0.1/keys", "https://127.0.0.1/keys.example.org"),
        *("http://keys.example.org/keys", "", None, 5, ["https://id.example.org/keys"]),
    ],
)
async def test_an_issuer_cannot_point_the_server_at_other_hosts(keys: object) -> None:
    with pytest.raises(Unusable):
        await found(keys, "keys.example.org")


@pytest.mark.parametrize("host", ["id.example.org", "keys.example.org"])
async def test_keys_may_be_at_the_host_of_the_issuer_and_at_the_configured_hosts(host: str) -> None:
    assert await found(f"https://{host}/keys", "keys.example.org") == f"https://{host}/keys"


class Publisher:
    """A provider of keys, with a clock that only its clients' sleep moves."""

    def __init__(self, *key_ids: str) -> None:
        self.now = 1000.0
        self.fetched_at: list[float] = []
        self.entries: list[object] = []
        self.publish(*key_ids)
        self.source = KeyUrl(
            at("https://id.example.org/keys"), self._fetch, self._clock, self._rest
        )

    def publish(self, *key_ids: str) -> None:
        self.entries = [jwk(ec_key(), kid=each) for each in key_ids]

    async def _fetch(self, _: str) -> bytes:
        self.fetched_at.append(self.now)
        text = orjson.dumps({"keys": self.entries})
        # Others run meanwhile.
        await asyncio.sleep(0)
        return text

    def _clock(self) -> float:
        return self.now

    async def _rest(self, seconds: float) -> None:
        self.now += seconds
        await asyncio.sleep(0)

    async def knows(self, key_id: str) -> bool:
        """Whether a token that names the key is verified with it."""
        await self.source.renew(key_id)
        return self.source.keys().knows(key_id)


async def test_a_key_that_was_rotated_in_after_the_last_fetch_is_fetched_within_a_second() -> None:
    provider = Publisher("old")
    assert await provider.knows("old")
    provider.publish("old", "new")
    assert await provider.knows("new")
    assert provider.fetched_at == [1000.0, 1001.0]
    # Later, at once.
    provider.now = 1020.0
    provider.publish("newest")
    assert await provider.knows("newest")
    assert provider.fetched_at[-1] == 1020.0


async def test_tokens_that_come_together_share_one_fetch() -> None:
    provider = Publisher("old")
    assert await provider.knows("old")
    provider.publish("old", "new")
    found = await asyncio.gather(*[provider.knows(each) for each in ("a", "new", "b", "c", "new")])
    assert found == [False, True, False, False, True]
    assert provider.fetched_at == [1000.0, 1001.0]


async def test_made_up_key_ids_use_up_a_budget_of_fetches() -> None:
    provider = Publisher("old")
    for number in range(100):
        assert not await provider.knows(f"made up {number}")
    assert len(provider.fetched_at) <= 12
    assert all(after - before >= 1.0 for before, after in pairwise(provider.fetched_at))
    # The budget fills again, and known keys never needed it.
    assert await provider.knows("old")
    provider.now += 11.0
    provider.publish("old", "new")
    assert await provider.knows("new")


async def test_unusable_keys_of_a_provider_are_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)
    provider = Publisher("old")
    provider.entries.append({"kid": "odd", "kty": "OKP", "crv": "Ed25519", "alg": "none"})
    for number in range(3):
        await provider.knows(f"made up {number}")
    assert len(provider.fetched_at) == 3
    (said,) = caplog.messages
    assert said.startswith("https://id.example.org/keys: key 2 ('odd'): it cannot be read (")
    caplog.clear()
    provider.entries.append(5)
    await provider.knows("made up, too")
    assert caplog.messages[-1].endswith("key 3: not an object; it is skipped")


def test_unusable_keys_of_a_file_are_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    good = jwk(ec_key(), kid="good")
    (tmp_path / "keys").write_bytes(orjson.dumps({"keys": [{**good, "key_ops": None}, good]}))
    assert KeyFile(tmp_path / "keys").keys().knows("good")
    assert caplog.messages == [
        f"{tmp_path}/keys: key 1 ('good'): key_ops is not a list; it is skipped"
    ]
