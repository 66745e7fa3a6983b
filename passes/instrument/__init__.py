"""What is put into a finished pair to be counted or watched, and where in the source it is. See README.md."""
