"""What pages say of a stream: its chart, its lines, the words of its ticks, what to look at."""
