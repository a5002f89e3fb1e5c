"""Machines and the bastion on a whole rig: real Cluster API managers, a real manager process, the simulated cloud."""
