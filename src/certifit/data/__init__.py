"""Where rows live: the validation gate, blocks and sources, files."""
