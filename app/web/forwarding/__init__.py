"""Forwards exchanges from the process that has a connection to the shard that has the session.

A process is a *door* for its connections, and the *home* of its sessions. For each pair of a door
and a home there is one link.
"""
