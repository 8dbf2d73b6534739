"""Who answers: scripted players on columns, and language models behind HTTP."""
