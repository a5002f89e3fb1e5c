"""An OpenStack that speaks the real HTTP API, in memory."""
