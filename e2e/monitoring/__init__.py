"""Alerts, dashboards and metrics of objects, on a real Prometheus."""
