"""What several commands share: reading options and showing answers."""
