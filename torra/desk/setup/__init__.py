"""Setting up a desk: its first files, its symbols and their bars."""
