"""What is read of a project, and what was found in it before."""
