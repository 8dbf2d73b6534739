"""A worker: a process that hosts agents."""
