"""Ask: questions about one's own desk, answered by code's sentences with their citations."""
