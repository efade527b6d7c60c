"""What analysts ask of six data sets, and what they are told: `<set>.sql` has the questions, written before anybody
looked at what comes of them, `<set>.toml` the owner's policy. None is reworded for an answer."""
