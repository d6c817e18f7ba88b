"""Settings tried on the desk's own stored bars of the last days, on L1 alone."""
