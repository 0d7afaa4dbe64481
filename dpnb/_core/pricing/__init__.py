"""What a query would cost and what its errors would be; made without the table."""
