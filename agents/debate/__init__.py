"""How a desk deliberates: asking, reading replies, stages, arithmetic, the record."""
