"""Measurements: run them with `make bench`; the figures are medians."""
