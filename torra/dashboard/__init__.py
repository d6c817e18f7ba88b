"""The pages of a desk. Importing this package alone loads nothing: the command line stays fast."""
