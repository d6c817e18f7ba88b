"""The DWX Connect protocol: the files of somebody else's Expert Advisor."""
