"""The same tick again: from the journal, as a trial, with altered bars, asked twice."""
