"""The checks of a desk: one table, shown by `torra doctor`, the start and the page Health."""
