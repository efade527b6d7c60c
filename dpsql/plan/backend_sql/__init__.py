"""The SQL that runs in the owner's engine, printed from judged rows and measures alone."""
