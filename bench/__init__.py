"""Holdfast measured beside Faye and CometD for Node; `make bench` runs it."""
