"""A module that an allowed name leads to, and that ends the program when it is imported."""

raise SystemExit(3)
