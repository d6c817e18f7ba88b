"""The other pages, a file each."""
