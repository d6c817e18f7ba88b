"""Layer 1 over a whole history at once: scores, verdicts and trades without a desk."""
