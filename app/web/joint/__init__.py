"""The administration of several shards: any worker asks all of them, and joins what they answer.

A server alone does not import it.
"""
