"""Churn for hours at a thousand machines: what grows although the number of objects does not."""
