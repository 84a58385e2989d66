"""One file per picture: a function from the context to SVG text."""
