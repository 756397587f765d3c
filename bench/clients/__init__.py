"""Measures what receiving costs a program, with Holdfast's Python client and with aiocometd."""
