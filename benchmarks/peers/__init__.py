"""One small program a peer: N agents think and answer a number. Each prints one line of JSON.

They are run as `python -m benchmarks.peers.NAME` with the Python of the peer's own environment, and
import their peer only after their arguments were read.
"""
