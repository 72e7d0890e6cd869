import unittest

from catalog import price


class TestCatalog(unittest.TestCase):
    def test_price(self) -> None:
        assert price("book") == 1250
