"""Envelopes, codecs and transports: how orchestrator, node and worker speak."""

import os

# Children are started by exec at once, so gRPC's fork handlers do nothing but write to the log.
# gRPC reads it when it is imported, and only parts of this package import it.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
