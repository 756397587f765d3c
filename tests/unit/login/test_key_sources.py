"""Keys come from where the operator or the issuer's own host says, and from nowhere else."""

import orjson
import pytest

from holdfast.login.failures import Unusable
from holdfast.login.key_sources import discovered

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
