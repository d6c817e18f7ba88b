"""The models that a desk can ask: what is known of them, and a test of one."""
