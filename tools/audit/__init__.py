"""Checks the installed packages for known vulnerabilities and the committed files for secrets."""
