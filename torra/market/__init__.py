"""Bars as arithmetic sees them: swings, regime, the broker's clock. Pure."""
