"""Benchmarks, fault injection and damaged input; see README.md."""
