"""Language models as users' agents see them: a handle that travels, and what comes back."""

from agentsim.chat.client import Client, use
from agentsim.chat.model import MODULES, Model, PendingReply, Reply
from agentsim.chat.persona import Persona

__all__ = ["MODULES", "Client", "Model", "PendingReply", "Persona", "Reply", "use"]
