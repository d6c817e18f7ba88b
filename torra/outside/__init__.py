"""Numbers from beside the chart: macro series, positions, files of one's own."""
