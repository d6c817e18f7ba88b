"""What every page stands on: the desk as it is seen, templates, commands, streams."""
