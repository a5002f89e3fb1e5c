"""What the operators' commands do: inventory, orphans, plan, adopt, explain; ``capo/cli`` has their arguments.

They act as the user of a kubeconfig, never as the manager, and read only unless a command requests write access.
"""
