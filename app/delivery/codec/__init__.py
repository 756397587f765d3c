"""The one form of a message, for the store, other shards and the next process."""
