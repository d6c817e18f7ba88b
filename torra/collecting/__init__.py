"""How a desk asks hosts for what no bar holds: the line to a host, and when it is asked."""
