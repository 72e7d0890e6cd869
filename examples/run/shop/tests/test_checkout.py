import unittest

from checkout import amount_due


class TestCheckout(unittest.TestCase):
    def test_amount_due(self) -> None:
        assert amount_due(["book"]) == 1740
        assert amount_due(["book", "lamp"]) == 5240
