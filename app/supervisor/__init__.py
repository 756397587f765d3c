"""The process that starts servers, keeps their sockets and lets one take over from the other.

It uses the standard library alone and knows no setting, so that it seldom changes and hardly fails.
"""
