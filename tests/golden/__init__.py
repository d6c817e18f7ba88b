"""Goldens: what Torra computes, sends, stores and shows, as committed text.

The parts `bytes_*` hold what stays byte for byte: prompts, schemas, wire bodies, scores, signals,
ledger rows, trades of replays. All others hold what people and programs see (pages, answers of the
API, output of commands, tables); names of fields and columns in them are compared through
`projection`. `parts` lists the parts. `make goldens` renews all of them and shows what changed.
"""
