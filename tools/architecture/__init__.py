"""The picture of the packages in docs/architecture.md, drawn from the imports."""
