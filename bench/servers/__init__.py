"""The contenders: the same tools, each in its own way."""
