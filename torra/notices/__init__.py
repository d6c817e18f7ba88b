"""Notices: what must reach a person who is not looking, and the way there.

A thread of its own looks at what the desk has stored (`watching`), says it in words (`words`) and
puts it into the outbox (torra.store.notices). One thread for each service takes it out (`sending`).
No tick and no courier enters this room, and nothing that fails here fails anywhere else.
"""
