"""What array libraries compute while a tape records."""
