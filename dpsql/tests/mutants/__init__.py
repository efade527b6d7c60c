"""The mutation gate: small faults derived from the syntax trees of files that carry a claim (soundness.md 5.2(5))."""
