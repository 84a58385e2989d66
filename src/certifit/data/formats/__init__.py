"""One file per format: what is in the files, and their rows in constant memory."""
