"""Limits as owners' machines have them, under statements that one person's rows could make grow: `make limits`."""
