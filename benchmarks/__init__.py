"""What the portal costs beside a hand-written psycopg loop that does the same work."""
