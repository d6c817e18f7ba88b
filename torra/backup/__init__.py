"""Copies of a home, and putting one back."""
