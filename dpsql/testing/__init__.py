"""Helpers for tests, ours and others': the reader of case files, noise injected in process."""
