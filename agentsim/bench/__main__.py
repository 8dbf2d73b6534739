"""`python -m agentsim.bench NAME SETTINGS`: one measurement; prints its result as JSON."""

from __future__ import annotations

import importlib
import json
import sys

from agentsim.errors import AgentsimError
from agentsim.rpc import lifeline

if __name__ == "__main__":
    lifeline.hold(lambda: None, grace_s=0.0, die_with_parent=False)
    measure = importlib.import_module(f"agentsim.bench.{sys.argv[1]}").measure
    try:
        print(json.dumps(measure(json.loads(sys.argv[2]))))
    except AgentsimError as error:
        print(f"agentsim: error: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
