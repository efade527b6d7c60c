"""What analysts ask of nine data sets, and what they are told: `<set>.sql` has the questions, written before anybody
looked at what comes of them, `<set>.toml` the owner's policy. None is reworded for an answer.

`instead.sql` has, of each that is refused in a data set of two people's rows, the statement that works.
"""
