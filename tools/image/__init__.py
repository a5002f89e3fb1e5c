"""The manager's image: locked dependencies, a base built from Debian packages, the build, and its bill of materials."""
