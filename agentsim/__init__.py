"""agentsim."""
