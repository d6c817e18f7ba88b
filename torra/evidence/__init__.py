"""The evidence that agents may cite: features, headlines and scheduled events, as values. Pure."""
