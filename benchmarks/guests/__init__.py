"""What runs in the environment of other programs: numpy, pandas and theirs, nothing of Torra."""
