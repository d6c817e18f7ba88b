"""What was known from beyond the chart, in words."""
