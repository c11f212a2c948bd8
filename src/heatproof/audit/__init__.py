"""How far the judging itself can be trusted."""
