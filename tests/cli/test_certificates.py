"""Certificates of authorities are read for a connection by TLS, not at each start."""

import ssl
import subprocess
import sys

from holdfast.cli.certificates import certificates_read_late
from tests.serving import ROOT, environment


def kept(context: ssl.SSLContext) -> int:
    return context.cert_store_stats()["x509"]


def connect(context: ssl.SSLContext) -> None:
    context.wrap_bio(ssl.MemoryBIO(), ssl.MemoryBIO(), server_hostname="example.org")


def late() -> ssl.SSLContext:
    with certificates_read_late():
        return ssl.create_default_context()


def test_a_context_reads_certificates_with_its_first_connection() -> None:
    context, usual = late(), ssl.create_default_context()
    assert kept(context) == 0
    connect(context)
    assert kept(context) == kept(usual)
    assert type(context) is ssl.SSLContext
    connect(context)


def test_a_context_is_as_strict_as_usual_before_and_after() -> None:
    context, usual = late(), ssl.create_default_context()
    for _ in range(2):
        assert context.verify_mode == usual.verify_mode == ssl.CERT_REQUIRED
        assert context.verify_flags == usual.verify_flags
        assert context.check_hostname
        connect(context)


def test_a_context_that_checks_no_certificate_reads_none() -> None:
    with certificates_read_late():
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.set_default_verify_paths()
    connect(context)
    assert kept(context) == 0


def test_contexts_of_others_read_certificates_at_once() -> None:
    late()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.set_default_verify_paths()
    assert kept(context) == kept(ssl.create_default_context())


_SERVER = """
from holdfast.cli.main import load
load("serve")
from aiohttp import connector
for each in (connector._SSL_CONTEXT_VERIFIED, connector._SSL_CONTEXT_UNVERIFIED):
    print(each.cert_store_stats()["x509"])
"""


def test_a_server_has_read_no_certificates_when_it_is_imported() -> None:
    said = subprocess.run(
        [sys.executable, "-c", _SERVER],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout.split() == ["0", "0"]
