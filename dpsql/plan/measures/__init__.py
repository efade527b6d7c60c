"""What is measured: aggregates to vectors of exact integers, their sensitivities, and the formulas over them."""
