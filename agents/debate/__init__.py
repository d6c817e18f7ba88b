"""The deliberation of a desk: asking, reading replies, stages, arithmetic, the record."""
