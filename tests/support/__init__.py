"""What `./test` and the client suites share. Standard library only: it runs before any venv exists."""
