"""The same work done by agentsim and by its peers, in turn; `python -m benchmarks.compare --help`.

No part of what is installed. docs/performance.md has the figures.
"""
