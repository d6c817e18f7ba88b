"""Committee: three seats vote on a symbol from stored evidence, and code makes a card of it."""
