"""What is measured: aggregates to measurements of exact integers, their sensitivities, and the formulas over them."""
