"""Jobs: work that takes minutes, asked for from a page and done beside the desk."""
