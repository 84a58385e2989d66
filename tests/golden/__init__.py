"""The golden net: what the package answers today, on some forty tables, through its public face alone."""
