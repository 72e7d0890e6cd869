def line(label: str, cents: int) -> str:
    return f"{label:<12}{cents // 100:>6}.{cents % 100:02}"
