"""What the trades of a desk came to, in money and in R."""
