"""What a desk does with its lessons beside the ticks: has them reviewed, and writes them down."""
