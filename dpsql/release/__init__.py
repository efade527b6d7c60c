"""What a statement releases: looked up, reserved, run, noised and stored; and what is made of stored draws."""
