"""Text in, status and value out."""
