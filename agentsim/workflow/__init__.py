"""Users' own programs: a function that is called with a cluster, personas and a model.

`agentsim.workflow.pipeline` runs them. It is not imported here: users' modules name `Workflow` on
workers too, which should start quickly.
"""

from agentsim.workflow.observer import Observer, Silent
from agentsim.workflow.program import Workflow, WorkflowStopped

__all__ = ["Observer", "Silent", "Workflow", "WorkflowStopped"]
