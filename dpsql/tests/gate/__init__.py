"""The newcomer's gate: dpsql as it is installed by the README, over data as owners have them. `make gate` runs it."""
