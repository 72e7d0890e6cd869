from money import cents


def fee(total: int) -> int:
    return 0 if total >= cents("50.00") else cents("4.90")
