"""From four scores to an action: brain, risk, levels, size, reasons to refuse. Pure."""
