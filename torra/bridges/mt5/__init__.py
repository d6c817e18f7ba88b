"""The MetaTrader5 package on Windows: orders without an Expert Advisor."""
