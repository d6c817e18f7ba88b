"""The seats of a swarm: a reader of the regime, four experts and the judge; a file each."""
