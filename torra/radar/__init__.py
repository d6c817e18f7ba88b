"""Radar: which symbols deserve a look now, by code alone."""
