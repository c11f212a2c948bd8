"""What executors share."""
