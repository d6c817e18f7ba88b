"""The other pages, one file each."""
