"""The same five programs in four libraries, by lines and by result: `python -m five_programs`."""
