"""Fakes that tests and users need: a model server with scripted replies and faults."""

from agentsim.testing.answers import Answer, Ask, Mode
from agentsim.testing.fake_model import FakeModelServer

__all__ = ["Answer", "Ask", "FakeModelServer", "Mode"]
