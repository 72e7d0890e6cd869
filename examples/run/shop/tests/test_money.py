import unittest

from money import cents


class TestMoney(unittest.TestCase):
    def test_cents(self) -> None:
        assert cents("12.50") == 1250
        assert cents("3") == 300
