from catalog import price


def total(articles: list[str]) -> int:
    return sum(price(article) for article in articles)
