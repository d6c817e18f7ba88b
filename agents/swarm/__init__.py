"""The seats of a swarm, a file each, and the words for what its experts may call odd."""
