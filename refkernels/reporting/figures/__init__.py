"""The style of plots, their files, and drawings of trees."""
