"""Access to the pages: the table of routes, sessions, scopes and limits."""
