"""Parts of pages: cells, chart data, timelines."""
