"""Numbers that no bar holds: who publishes them, when each was known, how they are collected."""
