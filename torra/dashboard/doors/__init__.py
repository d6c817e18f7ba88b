"""Who may come in and what an address allows: routes, scopes, limits."""
