"""The program of one machine: starts workers and the model server, relays, calls models."""
