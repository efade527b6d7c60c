"""The SQL that runs in the owner's engine, printed from owned rows and measurements alone."""
