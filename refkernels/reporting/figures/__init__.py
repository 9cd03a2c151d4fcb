"""How plots look and how they become files; trees drawn."""
