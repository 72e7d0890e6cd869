from cart import total
from shipping import fee


def amount_due(articles: list[str]) -> int:
    goods = total(articles)
    return goods + fee(goods)
