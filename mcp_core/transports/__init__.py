"""The ways messages travel. Each is imported when it is used."""
