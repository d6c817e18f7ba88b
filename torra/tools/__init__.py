"""Tools: what a scan, an agent or another program may read of a desk, and nothing else."""
