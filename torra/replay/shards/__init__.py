"""A replay in parts that resume: jobs, checkpoints, and the cluster that runs them."""
