"""Small parts that pages are put together from: cells, chart data, timelines."""
