"""One file a format: what is in the files, and their rows in constant memory."""
