"""Torra's own signal protocol: signed files in a folder shared with its Expert Advisor."""
