"""Gives connections without TLS to the worker of this machine whose requests they carry.

The kernel moves a connection in one piece: the other worker goes on as if it had accepted it.
"""
