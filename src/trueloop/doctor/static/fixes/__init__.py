"""`--fix`: edits of source that findings suggest."""
