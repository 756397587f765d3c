"""An authority that issues certificates for tests."""

import ipaddress
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

LIFE = timedelta(days=2)


class Authority:
    """Issues certificates of servers and clients, for names of its choice."""

    def __init__(self, home: Path, name: str = "the authority") -> None:
        self._home = home
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._count = 0
        made = self._sign(self._name, self._key, datetime.now(UTC), is_authority=True)
        self.file = self._write(f"{name}.pem", made.public_bytes(serialization.Encoding.PEM))

    def issue(
        self, name: str, *units: str, ago: timedelta = timedelta(), at: str = "127.0.0.1"
    ) -> tuple[Path, Path]:
        """Return the files of a certificate and its key; it was issued some time ago."""
        self._count += 1
        key = ec.generate_private_key(ec.SECP256R1())
        subject = [x509.NameAttribute(NameOID.COMMON_NAME, name)]
        subject += [x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, each) for each in units]
        made = self._sign(
            x509.Name(subject), key, datetime.now(UTC) - ago, is_authority=False, at=at
        )
        pem = serialization.Encoding.PEM
        secret = key.private_bytes(
            pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return (
            self._write(f"{self._count}.pem", made.public_bytes(pem)),
            self._write(f"{self._count}.key", secret),
        )

    def client(self, pair: tuple[Path, Path] | None = None) -> ssl.SSLContext:
        """Return how a client speaks TLS that trusts this authority and shows this certificate."""
        context = ssl.create_default_context(cafile=self.file)
        if pair is not None:
            context.load_cert_chain(*pair)
        return context

    def _sign(
        self,
        subject: x509.Name,
        key: ec.EllipticCurvePrivateKey,
        since: datetime,
        *,
        is_authority: bool,
        at: str = "127.0.0.1",
    ) -> x509.Certificate:
        here = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(at))])
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        own = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
        usage = x509.KeyUsage(
            digital_signature=not is_authority,
            key_cert_sign=is_authority,
            crl_sign=is_authority,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            encipher_only=False,
            decipher_only=False,
        )
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(since - timedelta(hours=1))
            .not_valid_after(since + LIFE)
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
            .add_extension(usage, critical=True)
            .add_extension(own, critical=False)
            .add_extension(issuer, critical=False)
            .add_extension(here, critical=False)
            .sign(self._key, hashes.SHA256())
        )

    def _write(self, name: str, text: bytes) -> Path:
        path = self._home / name
        path.write_bytes(text)
        path.chmod(0o600)
        return path
