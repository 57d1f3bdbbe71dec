"""An abstract interpreter of source: from files to runs to events."""
