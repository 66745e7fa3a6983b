"""What the tape of a derivative holds and how large it is. See README.md."""
