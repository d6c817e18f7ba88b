"""A package, so that no library that brings a package named tests stands in its place."""
