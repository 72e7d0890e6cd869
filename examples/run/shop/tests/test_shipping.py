import unittest

from shipping import fee


class TestShipping(unittest.TestCase):
    def test_fee(self) -> None:
        assert fee(5000) == 0
        assert fee(4999) == 490
