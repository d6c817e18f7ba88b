"""One tick's record, read for a page: reasons, arithmetic, citations, differences."""
