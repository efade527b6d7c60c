"""What engines spell differently, in one abstract dialect and one class an engine."""
