"""Compiled loops: arrays in, arrays out; no objects, no messages, no input checks."""
