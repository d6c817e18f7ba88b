"""The base of every page: the view of the desk, templates, commands, streams."""
