"""Where each host of the list accepts links."""

from pathlib import Path

from holdfast.compose.host_links import addresses_of
from holdfast.settings import Settings
from holdfast.web.host_links.tls_connection import plain


def test_a_host_is_known_by_its_name_without_the_brackets_of_an_address() -> None:
    settings = Settings(
        hosts=["A.example:8443", "[2001:DB8::7]:8444", "192.0.2.7:8445"],
        own_host="2001:db8::7",
        shards=3,
        redis="redis+cluster://valkey:6379",
        link_cert=Path("cert"),
        link_key=Path("key"),
        link_ca=Path("ca"),
    )
    assert addresses_of(settings) == {
        "a.example": ("a.example", 8443),
        "2001:db8::7": ("2001:db8::7", 8444),
        "192.0.2.7": ("192.0.2.7", 8445),
    }
    assert settings.own_host in addresses_of(settings)


def test_one_address_has_one_form() -> None:
    assert plain("[2001:DB8:0:0::7]") == plain("2001:db8::7") == "2001:db8::7"
    assert plain("A.Example") == "a.example"
