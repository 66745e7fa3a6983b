"""Statistics, machine learning and computer vision."""
