"""The way of a stored signal to the market and back, and a person's commands to the desk."""
