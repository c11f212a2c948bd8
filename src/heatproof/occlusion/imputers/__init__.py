"""What is put where evidence is taken away, one imputer per file."""
