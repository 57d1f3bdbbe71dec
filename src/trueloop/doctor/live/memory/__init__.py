"""What takes memory, and what would fit."""
