"""What several folders of tests share: random databases and statements, a real Postgres, what makes built files."""
