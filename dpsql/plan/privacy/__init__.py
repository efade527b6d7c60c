"""Whose each row is: the judgement of private and public rows, owners, keys, joins, and what one person can reach."""
