"""What is told of a firm beside its scores: manager, trader, and the time that reports name."""
