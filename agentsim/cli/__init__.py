"""The command line: one file a command. Only here does the program exit."""

from __future__ import annotations

import os
import sys

EXIT_BUG = 70
EXIT_INTERRUPTED = 130
EXIT_BROKEN_PIPE = 141


def main() -> None:
    """Run the command line and exit as the error tree says."""
    from agentsim.cli.app import app
    from agentsim.errors import AgentsimError

    try:
        app(prog_name="agentsim", standalone_mode=True)
    except AgentsimError as error:
        from agentsim.cli.failures import show

        show(error)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(EXIT_INTERRUPTED)
    except BrokenPipeError:
        # Whoever read our output has left; python would complain once more at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(EXIT_BROKEN_PIPE)
    except Exception:  # noqa: BLE001 - a bug of ours, to be told as one
        from agentsim.cli.failures import show_bug

        show_bug()
        sys.exit(EXIT_BUG)
