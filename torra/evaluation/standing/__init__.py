"""What a desk's own past says of each seat of its swarm, counted tick by tick."""
