"""What a stream holds: clusters, recent messages, the index between them, and the status of the work."""
