"""A certificate that was replaced is used without a restart."""

import asyncio
import logging
import signal
import ssl
import time
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from holdfast.compose.listen_addresses import find_addresses
from holdfast.compose.tls_files import reload_tls
from holdfast.settings import Settings
from tests.web.certificates import Authority
from tests.web.doors.stage import House, Talk, stage
from tests.web.doors.test_handing_over import GET
from tests.web.programs import program


def settings_in(home: Path, authority: Authority) -> Settings:
    """Settings of a server with a certificate."""
    put(home, *authority.issue("first"))
    given: dict[str, Any] = {"tls_cert": home / "tls.pem", "tls_key": home / "tls.key"}
    return Settings(data=home, port=0, **given)


def put(home: Path, cert: Path, key: Path) -> None:
    """Replace the files of the server."""
    cert.rename(home / "tls.pem")
    key.rename(home / "tls.key")


async def connect(house: House, authority: Authority) -> Talk:
    return Talk(*await asyncio.open_connection("127.0.0.1", house.port, ssl=authority.client()))


def shown(talk: Talk) -> str:
    """The name in the certificate that the server has shown."""
    secure: Any = talk.writer.get_extra_info("ssl_object")
    der = secure.getpeercert(binary_form=True)
    assert der is not None
    [name] = x509.load_der_x509_certificate(der).subject
    return str(name.value)


async def test_new_connections_get_a_new_certificate_and_old_ones_go_on(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    settings = settings_in(tmp_path, authority)
    addresses = await find_addresses(settings)
    async with stage(addresses.main.tls) as house:
        house.talks.append(before := await connect(house.old, authority))
        assert shown(before) == "first"
        put(tmp_path, *authority.issue("second"))
        reload_tls(settings, [house.old.listener])
        house.talks.append(after := await connect(house.old, authority))
        assert shown(after) == "second"
        for each in (before, after):
            assert (await each.ask(GET)).status == 200


@pytest.mark.parametrize("name", ["tls.pem", "tls.key"])
async def test_an_unreadable_file_leaves_the_former_certificate_in_use(
    tmp_path: Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    authority = Authority(tmp_path)
    settings = settings_in(tmp_path, authority)
    addresses = await find_addresses(settings)
    async with stage(addresses.main.tls) as house:
        (tmp_path / name).unlink()
        with caplog.at_level(logging.ERROR):
            fault = reload_tls(settings, [house.old.listener])
        assert f"there is no file {tmp_path / name}" in caplog.text
        assert fault in caplog.text
        house.talks.append(client := await connect(house.old, authority))
        assert shown(client) == "first"


def test_a_hangup_lets_a_server_without_a_terminal_read_its_certificate_again(
    tmp_path: Path,
) -> None:
    authority = Authority(tmp_path)
    put(tmp_path, *authority.issue("first"))
    flags = ["--tls-cert", str(tmp_path / "tls.pem"), "--tls-key", str(tmp_path / "tls.key")]
    with program("--port", "0", "--data", str(tmp_path / "data"), *flags, home=tmp_path) as server:
        address = ("127.0.0.1", int(server.ready_line().split()[3].split(":")[2].split("/")[0]))
        assert common_name(address) == "first"
        put(tmp_path, *authority.issue("second"))
        server.process.send_signal(signal.SIGHUP)
        ends_at = time.monotonic() + 60.0
        while common_name(address) == "first":
            assert time.monotonic() < ends_at
        assert common_name(address) == "second"
        assert server.stop()[0] == 0


def common_name(address: tuple[str, int]) -> str:
    certificate = x509.load_pem_x509_certificate(ssl.get_server_certificate(address).encode())
    [name] = certificate.subject
    return str(name.value)
