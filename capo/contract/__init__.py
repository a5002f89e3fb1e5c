"""Rules of Cluster API's provider contract, as pure functions."""
