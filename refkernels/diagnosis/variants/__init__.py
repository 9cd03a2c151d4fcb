"""Other questions that a kernel may have answered; each is a cause (`hypothesis.Variant`)."""
