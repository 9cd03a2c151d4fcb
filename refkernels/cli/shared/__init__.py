"""Code that several commands share: it reads options and shows answers."""
