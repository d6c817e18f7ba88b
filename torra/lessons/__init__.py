"""Lessons of closed trades: what they are, what they say, and which of them a tick is told."""
