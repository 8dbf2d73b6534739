"""The rounds: a pure state machine and its asyncio shell."""
