"""Benchmarks of Holdfast, Faye and CometD for Node; `make bench` runs them."""
