"""Runs sluice, its floors and its peers against the load generator and compares them."""
