"""What `training_facts.py` checks: claims about the frameworks, by section of the survey."""
