"""The ticks that agents changed, beside what L1 alone would have done."""
