"""What is told of a swarm beside its scores: experts, regime, judge, and what is left of sizes."""
