"""The picture of a chart: drawn here, or MT5's own screenshot."""
