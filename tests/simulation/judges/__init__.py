"""Judges of simulated worlds, a module each."""
