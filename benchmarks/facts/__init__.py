"""The claims about frameworks that `training_facts.py` checks, by section of the survey."""
