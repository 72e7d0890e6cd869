"""Typed questions, what answered them, and the answers in the ledger.

`question` says what an answer may be, `assumptions` pairs assumptions with questions, `interview` decides who
answers what, `recorded_answers` keeps the answers. `init` and runs ask.
"""
