"""Reading of a project's files, and the cache of earlier findings."""
