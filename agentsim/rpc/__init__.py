"""Envelopes, codecs and transports: how orchestrator, node and worker speak."""
