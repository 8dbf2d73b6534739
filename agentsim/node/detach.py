"""`python -m agentsim.node.detach LOG`: a node that outlives the shell, or ssh, that started it.

The node inherits stdin and stdout, reads its settings and says that it listens like any other. It
holds both until its parent writes KEEP; a parent that is gone before that takes the node with it.
"""

from __future__ import annotations

import subprocess
import sys


def main() -> None:
    """Start the node in a session of its own, and leave."""
    # Not through a context manager: leaving it would wait for the node.
    with open(sys.argv[1], "ab") as log:  # noqa: PTH123 - nothing is imported for it
        subprocess.Popen(
            [sys.executable, "-P", "-m", "agentsim.node"],
            stderr=log,
            start_new_session=True,
        )


if __name__ == "__main__":
    main()
