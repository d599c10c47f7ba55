"""Adapters for frameworks, one module for each. They import their framework, this package does not."""
