"""The record of one tick, arranged for a page: reasons, arithmetic, citations."""
