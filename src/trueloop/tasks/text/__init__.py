"""The task `text`: a language model of any text."""
