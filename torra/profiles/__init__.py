"""Settings: their fields, what guards them, and files with a history."""
