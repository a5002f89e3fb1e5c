"""What is installed and what is committed, looked at for known vulnerabilities and for secrets."""
