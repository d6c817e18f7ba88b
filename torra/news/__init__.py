"""Where headlines and calendars come from, and how their words are read."""
