"""From an auction log to back-tested reserve prices."""
