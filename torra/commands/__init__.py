"""Every `torra` command, thin: options in, a table or JSON out."""
