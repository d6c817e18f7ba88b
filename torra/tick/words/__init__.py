"""What a manager, a trader and a swarm said of a tick, in words for pages and commands."""
