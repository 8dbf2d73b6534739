"""`python -m agentsim`."""

from agentsim.cli import main

if __name__ == "__main__":
    main()
