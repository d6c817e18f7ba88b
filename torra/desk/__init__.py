"""One process at work: schedule, wiring, clocks, checks, streams, promotion."""
