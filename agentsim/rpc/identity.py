"""What one side of a connection shows, and whom it accepts.

It travels in settings that every program reads, so what TLS needs is imported where it is used.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    import grpc

NODE_NAME = "node.agentsim"
ORCHESTRATOR_NAME = "orchestrator.agentsim"


class Identity(msgspec.Struct, frozen=True):
    """A certificate with its key, and the authority whose certificates its owner accepts.

    Attributes:
        ca: the authority's certificate, PEM.
        certificate: PEM.
        key: of the certificate, PEM; secret. It is left out of `repr`.
    """

    ca: bytes
    certificate: bytes
    key: bytes

    def __repr__(self) -> str:
        return f"Identity(until {self.until:%Y-%m-%d})"

    @property
    def until(self) -> datetime:
        """When the certificate ends, UTC."""
        from cryptography import x509

        return x509.load_pem_x509_certificate(self.certificate).not_valid_after_utc

    def unlike(self, other: Identity) -> str:
        """Why this can take no place of another identity; empty when it can."""
        from cryptography import x509
        from cryptography.exceptions import InvalidSignature

        mine, others = map(x509.load_pem_x509_certificate, (self.certificate, other.certificate))
        try:
            mine.verify_directly_issued_by(x509.load_pem_x509_certificate(other.ca))
        except (ValueError, TypeError, InvalidSignature):
            return "not of this cluster"
        if self.ca != other.ca:
            return "not of this cluster"
        return "" if mine.subject == others.subject else "not a node's"

    def for_server(self, renewed: Callable[[], Identity] | None = None) -> grpc.ServerCredentials:
        """Credentials of a server that lets in nobody without a certificate of this authority.

        Args:
            renewed: gives the identity for each new connection, for servers that outlive one.
        """
        import grpc

        if renewed is None:
            return grpc.ssl_server_credentials([(self.key, self.certificate)], self.ca, True)

        def fetch() -> grpc.ServerCertificateConfiguration:
            return _configuration(renewed())

        return grpc.dynamic_ssl_server_credentials(_configuration(self), fetch, True)

    def for_client(self) -> grpc.ChannelCredentials:
        """Credentials of a client that speaks to nobody without a certificate of this authority."""
        import grpc

        return grpc.ssl_channel_credentials(self.ca, self.key, self.certificate)


def _configuration(identity: Identity) -> grpc.ServerCertificateConfiguration:
    import grpc

    pairs = [(identity.key, identity.certificate)]
    return grpc.ssl_server_certificate_configuration(pairs, identity.ca)
