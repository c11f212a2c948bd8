"""The ledger: what the papers claim, the recipe that tests each claim, and what came out."""
