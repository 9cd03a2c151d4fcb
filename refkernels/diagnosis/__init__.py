"""Why do these numbers differ? Models of the frameworks' own algorithms, compared bit by bit."""
