"""Numbers as text, tables, plots and documents, for pages, paper and terminal."""
