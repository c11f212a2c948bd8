"""Statistics of scores: intervals, tests, rankings, agreement. Numbers only."""
