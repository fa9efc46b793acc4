"""What an answer is: plain data, and how it becomes JSON."""
