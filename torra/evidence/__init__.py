"""What an agent may cite: features, headlines and scheduled events, as values. Pure."""
