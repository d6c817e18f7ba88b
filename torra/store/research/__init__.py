"""The stores of what people ask of a desk beside its ticks."""
