"""Language models as users' agents see them: a handle that travels, and what comes back."""

from agentsim.chat.client import Client, use
from agentsim.chat.model import MODULES, Model, PendingReply, Reply

__all__ = ["MODULES", "Client", "Model", "PendingReply", "Reply", "use"]
