"""The only place of the version: image, chart, metadata.yaml and ``--version`` read it from here."""

VERSION = "1.0.0-alpha.1"
