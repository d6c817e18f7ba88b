"""Signals, positions, proposals, alarms and accounts, as they are stored."""
