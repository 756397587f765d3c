"""A link between hosts needs certificates of both, with their names, of one authority, in time."""

import asyncio
import logging
import ssl
from pathlib import Path
from typing import Any

import pytest

from holdfast.compose.cannot_start import CannotStart
from holdfast.compose.link_certificates import LinkCertificates, TlsOfLinks
from holdfast.settings import Settings
from tests.store.store_process import until
from tests.web.certificates import Authority
from tests.web.host_links.stage import DOOR, HOME, LONG_AGO, Certificates, Hall, hall


async def refused(both: Hall) -> None:
    """Wait for several attempts, none of which may succeed."""
    await until(lambda: both.known.asked > 3)
    assert not both.far.is_linked
    assert not both.server._homes


@pytest.mark.parametrize(
    ("at", "ago", "is_foreign", "fault"),
    [
        (DOOR, None, False, "IP address mismatch"),
        (HOME, LONG_AGO, False, "certificate has expired"),
        (HOME, None, True, "unable to get local issuer certificate"),
    ],
    ids=["name", "expired", "authority"],
)
async def test_a_door_refuses_a_home_with_the_wrong_certificate(
    tmp_path: Path,
    certificates: Certificates,
    caplog: pytest.LogCaptureFixture,
    at: str,
    ago: Any,
    is_foreign: bool,
    fault: str,
) -> None:
    by = Authority(tmp_path, "another one") if is_foreign else None
    certificates.home = certificates.of(at, ago=ago, by=by)
    async with hall(tmp_path, certificates) as both:
        await refused(both)
    said = [each for each in caplog.messages if each.startswith("no link to shard 1")]
    assert len(said) == 1
    assert fault in said[0]


@pytest.mark.parametrize(
    ("at", "ago", "is_foreign", "fault"),
    [
        ("127.0.0.3", None, False, "with a certificate for ['127.0.0.3']"),
        (DOOR, LONG_AGO, False, "certificate has expired"),
        (DOOR, None, True, "unable to get local issuer certificate"),
    ],
    ids=["name", "expired", "authority"],
)
async def test_a_home_refuses_a_door_with_the_wrong_certificate(
    tmp_path: Path,
    certificates: Certificates,
    caplog: pytest.LogCaptureFixture,
    at: str,
    ago: Any,
    is_foreign: bool,
    fault: str,
) -> None:
    by = Authority(tmp_path, "another one") if is_foreign else None
    certificates.door = certificates.of(at, ago=ago, by=by)
    async with hall(tmp_path, certificates) as both:
        await refused(both)
    at_home = [each for each in caplog.messages if "another host is refused" in each]
    assert len(at_home) == 1
    assert fault in at_home[0]
    # Each host has a log.
    at_door = [each for each in caplog.messages if "no link to shard 1" in each]
    assert "it has closed the connection" in at_door[0]


async def test_a_door_without_a_certificate_is_refused(
    tmp_path: Path, certificates: Certificates, caplog: pytest.LogCaptureFixture
) -> None:
    bare = ssl.create_default_context(cafile=str(certificates.authority.file))
    certificates.door.client = bare
    async with hall(tmp_path, certificates) as both:
        await refused(both)
    assert "peer did not return a certificate" in caplog.text


async def test_an_older_tls_is_refused(tmp_path: Path, certificates: Certificates) -> None:
    certificates.door.client.minimum_version = ssl.TLSVersion.TLSv1_2
    certificates.door.client.maximum_version = ssl.TLSVersion.TLSv1_2
    async with hall(tmp_path, certificates) as both:
        await refused(both)


async def test_a_certificate_that_was_replaced_holds_for_the_next_link(
    tmp_path: Path, certificates: Certificates
) -> None:
    good = certificates.door
    certificates.door = certificates.of(DOOR, ago=LONG_AGO)
    async with hall(tmp_path, certificates) as both:
        await refused(both)
        certificates.door = good
        await both.linked()


# The files


def settings_in(home: Path, authority: Authority, at: str = HOME) -> Settings:
    """Settings of a host, whose certificate is for this address."""
    put(home, authority, at)
    files: dict[str, Any] = {
        "link_cert": home / "link.pem",
        "link_key": home / "link.key",
        "link_ca": authority.file,
    }
    return Settings(**files)


def put(home: Path, authority: Authority, at: str = HOME) -> None:
    """Replace the files of the host."""
    cert, key = authority.issue("a host", at=at)
    key.rename(home / "link.key")
    cert.rename(home / "link.pem")


def test_files_are_read_again_when_they_have_changed(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    certificates = LinkCertificates(settings_in(tmp_path, authority), HOME)
    first = certificates.now
    assert certificates.now is first
    put(tmp_path, authority)
    second = certificates.now
    assert second is not first
    assert certificates.now is second


def test_files_that_cannot_be_read_leave_the_former_ones_in_use_and_are_tried_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    authority = Authority(tmp_path)
    certificates = LinkCertificates(settings_in(tmp_path, authority), HOME)
    first = certificates.now
    # The key follows later.
    cert, key = authority.issue("a host")
    cert.rename(tmp_path / "link.pem")
    assert certificates.now is first
    assert certificates.now is first
    assert caplog.text.count("the former certificate of links stays in use") == 1
    key.rename(tmp_path / "link.key")
    assert certificates.now is not first
    (tmp_path / "link.pem").unlink()
    second = certificates.now
    assert "there is no file" in caplog.text
    assert certificates.now is second


@pytest.mark.parametrize("name", ["link.pem", "link.key", "the authority.pem"])
def test_a_file_that_cannot_be_read_is_named_at_the_start(tmp_path: Path, name: str) -> None:
    settings = settings_in(tmp_path, Authority(tmp_path))
    (tmp_path / name).write_text("no certificate")
    with pytest.raises(CannotStart, match=f"{name} must have|and .*{name} its key"):
        LinkCertificates(settings, HOME)
    (tmp_path / name).unlink()
    with pytest.raises(CannotStart, match=f"there is no file .*{name}"):
        LinkCertificates(settings, HOME)


def test_links_need_certificates() -> None:
    with pytest.raises(CannotStart, match="hosts needs link_cert, link_key and link_ca"):
        LinkCertificates(Settings(), HOME)


@pytest.mark.parametrize(
    ("at", "ago", "fault"),
    [
        (HOME, None, None),
        (DOOR, None, "IP address mismatch"),
        (HOME, LONG_AGO, "certificate has expired"),
    ],
    ids=["good", "name", "expired"],
)
def test_a_host_knows_whether_others_will_refuse_its_certificate(
    certificates: Certificates, at: str, ago: Any, fault: str | None
) -> None:
    found = certificates.of(at, ago=ago).fault_for(HOME)
    if fault is None:
        assert found is None
    else:
        assert fault in (found or "")


def test_a_certificate_that_others_will_refuse_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR):
        LinkCertificates(settings_in(tmp_path, Authority(tmp_path), at=DOOR), HOME)
    assert "link_cert: other machines refuse" in caplog.text


def test_an_authority_that_did_not_sign_the_certificate_is_no_use(tmp_path: Path) -> None:
    other = Authority(tmp_path, "another one")
    tls = TlsOfLinks(*Authority(tmp_path).issue("a host"), other.file)
    assert "unable to get local issuer certificate" in (tls.fault_for(HOME) or "")


async def test_a_link_that_is_made_goes_on_while_files_cannot_be_read(
    tmp_path: Path, certificates: Certificates
) -> None:
    async with hall(tmp_path, certificates) as both:
        await both.opened()
        certificates.door = certificates.of(DOOR, ago=LONG_AGO)
        both.far.passage.send(b"a")
        await until(lambda: len(both.inlet.came) == 1)
        await asyncio.sleep(0)
        assert both.far.is_linked
