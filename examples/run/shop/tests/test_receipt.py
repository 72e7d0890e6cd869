import unittest

from receipt import line


class TestReceipt(unittest.TestCase):
    def test_line(self) -> None:
        assert line("lamp", 3990) == "lamp            39.90"
