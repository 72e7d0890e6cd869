import unittest

from cart import total


class TestCart(unittest.TestCase):
    def test_total(self) -> None:
        assert total(["book", "lamp"]) == 5240
        assert total([]) == 0
