"""Ready-made tasks: spiral, digits, table, images; and the base of the user's own."""

from trueloop.tasks.base import Recipe, Splits, Task, Unseen

__all__ = ["Recipe", "Splits", "Task", "Unseen"]
