"""What the scores add up to: numbers only."""
