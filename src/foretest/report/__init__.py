"""Results for readers: charts as plain data, and the pictures made of them."""
