"""Whose each row is: the privacy analysis, owners, keys, joins, and what one person can reach."""
