"""Figures on what a replay or a desk did: arms, agents and the gate, each with its uncertainty."""
