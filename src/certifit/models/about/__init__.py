"""What is known of each family of models, a file per family: its rows in the table of models."""
