"""Landing: what writes to the working tree. Each write is whole or not at all."""
