"""Audits of the evaluations themselves: how far their scores can be trusted."""
