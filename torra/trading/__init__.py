"""From a stored signal to the market and back, and a person's hand on the desk."""
