"""The contenders: the same echo tool, each in its own way."""
