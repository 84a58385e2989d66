"""One file a picture: a function from the context to SVG text."""
