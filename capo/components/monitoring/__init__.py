"""What an operator's monitoring needs: alerts for Prometheus, dashboards for Grafana, metrics of objects.

Each is a small model here and a generated file in ``charts/capo/files``.
"""
