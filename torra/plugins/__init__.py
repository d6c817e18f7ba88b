"""Packages of other people: which may be loaded, and what they bring."""
