"""Who may speak to whom over a network: a small authority a run, and what it signs.

An authority lives in the memory of the orchestrator and ends with it. It signs one certificate for
the orchestrator and one for each node; both sides ask for the other's, and take no other
authority's. What a certificate is for stands in it twice, as its only name and as its use, so a
node's certificate opens nothing on another node.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from agentsim.rpc.identity import NODE_NAME, ORCHESTRATOR_NAME, Identity

__all__ = ["NODE_NAME", "ORCHESTRATOR_NAME", "Authority", "Identity", "Role"]

Role = Literal["node", "orchestrator"]

_NAMES: dict[Role, str] = {"node": NODE_NAME, "orchestrator": ORCHESTRATOR_NAME}
_USES = {
    "node": ExtendedKeyUsageOID.SERVER_AUTH,
    "orchestrator": ExtendedKeyUsageOID.CLIENT_AUTH,
}
# Clocks of hosts differ; a certificate that is not valid yet is the commonest failure of TLS.
_EARLIER = timedelta(days=1)
_VALID = timedelta(days=30)


@dataclass(frozen=True, slots=True, repr=False)
class Authority:
    """Signs certificates. Use `create`.

    Attributes:
        certificate: its own, PEM.
    """

    certificate: bytes
    _key: ec.EllipticCurvePrivateKey

    @classmethod
    def create(cls, name: str, valid: timedelta = _VALID) -> Authority:
        """A new authority, which nobody trusts yet.

        Args:
            name: of the run or cluster; shown by tools that print certificates.
            valid: how long from now.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        # Two authorities of one name are told apart by their subjects, so that a certificate of
        # the other one is refused for its issuer and not for its signature.
        subject = _subject(f"agentsim {name[:30]} {secrets.token_hex(4)}")
        builder = (
            _builder(subject, subject, key.public_key(), valid)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_key_usage(signs=True), critical=True)
        )
        signed = builder.sign(key, hashes.SHA256())
        return cls(signed.public_bytes(serialization.Encoding.PEM), key)

    @classmethod
    def load(cls, certificate: bytes, key: bytes) -> Authority:
        """An authority that was kept.

        Args:
            certificate, key: PEM; see `key`.
        """
        loaded = serialization.load_pem_private_key(key, None)
        assert isinstance(loaded, ec.EllipticCurvePrivateKey)
        return cls(certificate, loaded)

    def __repr__(self) -> str:
        return "Authority()"

    @property
    def key(self) -> bytes:
        """Its key, PEM; secret. Only what must outlive this process keeps it."""
        return _pem(self._key)

    def issue(self, role: Role, valid: timedelta = _VALID) -> Identity:
        """An identity for one side of a connection.

        Args:
            role: `node` serves, `orchestrator` asks; neither passes for the other.
            valid: how long from now.
        """
        issuer = x509.load_pem_x509_certificate(self.certificate).subject
        key = ec.generate_private_key(ec.SECP256R1())
        name = _NAMES[role]
        builder = (
            _builder(_subject(name), issuer, key.public_key(), valid)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(signs=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([_USES[role]]), critical=True)
            .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        )
        signed = builder.sign(self._key, hashes.SHA256())
        certificate = signed.public_bytes(serialization.Encoding.PEM)
        return Identity(self.certificate, certificate, _pem(key))


def _subject(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, valid: timedelta
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _EARLIER)
        .not_valid_after(now + valid)
    )


def _key_usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
