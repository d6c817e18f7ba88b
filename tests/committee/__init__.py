"""The committee: three seats, a vote that cannot be talked up, and a card."""
