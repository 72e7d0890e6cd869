"""Decides the outcome of a claim after a scan: whether enough was scanned, and what becomes of the verdict.

Also which claims are about placeholders, which name another failure too, and which may never be contradicted.
A claim is contradicted only where no placeholder was found and every file that could have one was read whole.
In case of doubt the claim is kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from patchgate.placeholders.claims.claim import (
    Adjudication,
    Claim,
    ClaimOutcome,
    Coverage,
    ScanResult,
    SkipReason,
    Tier,
    outcome_of,
)
from patchgate.placeholders.claims.claim_wording import explain
from patchgate.placeholders.claims.feedback_parsing import (
    LONG,
    MOST_TEXT,
    NAME,
    asserts,
    asserts_placeholder,
    clauses_of,
    quotations,
    sentences_of,
)
from patchgate.policy.settings import ClaimsSettings
from patchgate.report.rules import RULES, Stage
from patchgate.values import replace

_FAILURE = re.compile(
    r"(?:fail|error|wrong|crash|broke|breaks|breaking|incorrect|exception|segfault|segmentation|regress|invalid"
    r"|mismatch|missing|misses|lost|loses|leak|vulnerab|bugs?$|buggy|flak|hangs?$|hung|deadlock|violat|insecur"
    r"|unsafe|corrupt|panic|traceback|overflow|timeout|timed|unexpected|inconsisten|undefined|conflict|typo"
    r"|insufficien|unhandled|uncaught|unsupported|malformed|misspel|inaccura|faulty?$|defect|differs?$|untested"
    r"|red$)|(?:\w*[a-z])?error$|(?:\w*[a-z])?exception$"
)
# The name of a file is not a failure.
_FILE = re.compile(
    r"\.(?:py|js|tsx?|jsx|c|cc|cpp|h|go|rs|java|kt|rb|md|txt|rst|log|csv|json|ya?ml|toml|ini|cfg|xml|html?|css|sh|sql)$"
)
_WORDS = re.compile(rf"{NAME}|[\w'-]+(?:[./][\w'-]+)*|[:,]")
_DENIALS = {"no", "not", "without", "zero", "0", "never", "none", "nor", "neither", "nothing", "cannot"}
_NOTHING = {"0", "no", "none", "zero"}
_AUXILIARY = re.compile(
    r"do|does|did|can|could|will|would|is|are|was|were|has|have|had|should|must|may|might"
)
# "not finished", "cannot be accepted", "did not find more" do not name another failure.
_GENERAL = re.compile(
    r"finds?|found|seen?|detect(?:ed)?|noticed?|finished|completed?|done|ready|accept(?:ed|able)?|approved?"
    r"|final|only|just"
)
_REACH = 4
_PIECES = re.compile(r",| (?:and|or|nor|so|then|yet) ")
PLACEHOLDER_CODES = frozenset({"incomplete_deliverable_placeholder", "incomplete_deliverable_content"})
HARD_INVARIANTS = frozenset({"hard_invariant", "hard_invariant_failed"})
INCONCLUSIVE_CODE = "parse_inconclusive"
INCONCLUSIVE_CLASS = "inconclusive"
MOST_CONFIDENCE = 0.5
# Blanks and hyphens, also non-breaking ones.
_BETWEEN_WORDS = re.compile(r"[\s_\-\u2010-\u2015]+|(?<=[a-z])(?=[A-Z])")
_PATCH_CODE = "patch_"
_STAGE_CODES = frozenset(stage.code.lower() for stage in Stage)


def names_other_failure(texts: Iterable[str]) -> bool:
    """Return whether a text names a failure other than a placeholder; a text too long to read does."""
    left = MOST_TEXT
    for text in texts:
        if len(text) > left:
            return True
        left -= len(text)
        if any(_names_failure(sentence) for sentence in sentences_of(text)):
            return True
    return False


def _names_failure(sentence: str) -> bool:
    if len(sentence) > LONG:
        return any(_is_failure_word(word) for word in _WORDS.findall(sentence.lower()))
    if any(_is_failure(inner.lower()) for inner in quotations(sentence)):
        return True
    for clause in clauses_of(sentence):
        # After "a placeholder remains" the other half may name another failure.
        pieces = [each for each in _PIECES.split(clause) if NAME not in each] if asserts(clause) else [clause]
        if any(_is_failure(piece) for piece in pieces):
            return True
    return False


def _is_failure(clause: str) -> bool:
    words = _WORDS.findall(clause)
    is_about_name = NAME in words
    return any(
        _is_undenied_failure(words, at) or (not is_about_name and _is_negated_verb(words, at))
        for at in range(len(words))
    )


def _is_undenied_failure(words: list[str], at: int) -> bool:
    """Return whether a word names a failure that is not denied, as in: no error, never fails, errors: 0."""
    if not _is_failure_word(words[at]):
        return False
    is_counted = words[at + 1 : at + 2] == [":"] and not _NOTHING.isdisjoint(words[at + 2 : at + 3])
    return not is_counted and not any(_is_denial(word) for word in words[max(at - _REACH, 0) : at])


def _is_negated_verb(words: list[str], at: int) -> bool:
    """Return whether a word says that something does not work: does not return, can't be read."""
    is_not = words[at] == "not" and at > 0 and _AUXILIARY.fullmatch(words[at - 1])
    if not is_not and words[at] != "cannot" and not words[at].endswith("n't"):
        return False
    behind = words[at + 1 : at + 1 + _REACH]
    return not any(_GENERAL.fullmatch(word) or _is_failure_word(word) for word in behind)


def _is_failure_word(word: str) -> bool:
    return not _FILE.search(word) and any(_FAILURE.match(part) for part in re.split(r"[./]", word))


def _is_denial(word: str) -> bool:
    return word in _DENIALS or word.endswith("n't")


def is_invariant(claim: Claim) -> bool:
    """Return whether a failure always blocks: a hard invariant, a rule of patchgate, a code of a stage."""
    if claim.has_hard_invariant or any(map(is_hard_invariant, (claim.severity_class, claim.reason_code))):
        return True
    code = _normalized(claim.reason_code)
    return code in RULES or code in _STAGE_CODES or code.startswith(_PATCH_CODE)


def is_hard_invariant(text: str | None) -> bool:
    """Return whether a word means a failed hard invariant, in any spelling of its parts."""
    return _BETWEEN_WORDS.sub("_", (text or "").strip()).lower() in HARD_INVARIANTS


def is_placeholder_claim(claim: Claim) -> bool:
    """Return whether a verdict says that a placeholder remains, by its code or in its words.

    With a code of another kind, its words must not name another failure: a scan for placeholders cannot
    disprove that one.
    """
    code = _normalized(claim.reason_code)
    if code in PLACEHOLDER_CODES:
        return True
    texts = (claim.feedback, *claim.issues)
    return asserts_placeholder(texts) and not (code and names_other_failure(texts))


def needs_scan(claim: Claim, settings: ClaimsSettings) -> bool:
    """Return whether a scan could change the outcome."""
    return (
        settings.contradiction_guard_enabled
        and not claim.passed
        and not is_invariant(claim)
        and is_placeholder_claim(claim)
    )


def _normalized(text: str | None) -> str:
    return (text or "").strip().lower()


def coverage_of(scan: ScanResult, settings: ClaimsSettings, *, is_strict: bool | None = None) -> Coverage:
    """Decide whether a scan that found nothing covered enough to contradict a claim.

    Without strict coverage any file is enough, but never where the time ran out or a marker cannot be used.

    Args:
        is_strict: which rule applies; None: that of the settings.
    """
    if is_strict is None:
        is_strict = settings.contradiction_guard_strict_coverage
    reasons = tuple(_strict_reasons(scan, settings) if is_strict else _permissive_reasons(scan))
    if settings.has_unusable_markers:
        reasons = (*reasons, "marker_unusable")
    return Coverage(not reasons, reasons)


def _strict_reasons(scan: ScanResult, settings: ClaimsSettings) -> Iterator[str]:
    if not scan.scanned:
        yield "no_files_scanned"
    if not any(each.tier in {Tier.CANONICAL, Tier.CURRENT} for each in scan.scanned):
        yield "no_canonical_or_changed_candidate_scanned"
    is_only_deliverable = scan.source_counts.get(Tier.CANONICAL, 0) == 1 and any(
        each.tier is Tier.CANONICAL for each in scan.scanned
    )
    enough = settings.contradiction_scan_min_files_for_sufficiency
    if len(scan.scanned) < enough and not is_only_deliverable:
        yield "minimum_file_coverage_not_met"
    unread = {each.reason for each in scan.skipped if each.candidate.tier.is_high_priority}
    if SkipReason.CAP in unread:
        yield "cap_exhausted_before_priority_scan"
    for reason in SkipReason:
        if reason in unread:
            yield f"priority_candidate_unscanned:{reason.value}"
    if scan.is_fallback_cut:
        yield "cap_exhausted_in_fallback"
    if scan.timed_out and SkipReason.TIMEOUT not in unread:
        yield "scan_timed_out"


def _permissive_reasons(scan: ScanResult) -> Iterator[str]:
    if not scan.scanned:
        yield "no_files_scanned"
    if scan.timed_out:
        yield "scan_timed_out"


def decide(
    claim: Claim,
    scan: ScanResult | None,
    settings: ClaimsSettings,
    read_from: str = "",
    warnings: tuple[str, ...] = (),
) -> Adjudication:
    """Decide what becomes of a verdict.

    Args:
        scan: None: nothing was scanned; where a scan is needed, the claim is then not contradicted.
        read_from: "the index", "the working tree", or the revision that was scanned.
    """
    if not needs_scan(claim, settings):
        scan = None
    elif scan is None:
        scan = ScanResult()
    coverage = coverage_of(scan, settings) if scan is not None else None
    strict = coverage_of(scan, settings, is_strict=True) if scan is not None else None
    outcome = _outcome(claim, scan, coverage)
    is_contradicted = outcome is ClaimOutcome.CONTRADICTED
    found = Adjudication(
        claim=claim,
        outcome=outcome,
        passed=outcome is ClaimOutcome.PASSED,
        reason_code=INCONCLUSIVE_CODE if is_contradicted else claim.reason_code,
        severity_class=INCONCLUSIVE_CLASS if is_contradicted else claim.severity_class,
        confidence=_lowered(claim.confidence) if is_contradicted else claim.confidence,
        contradicted_reason_code=claim.reason_code if is_contradicted else None,
        is_placeholder_claim=is_placeholder_claim(claim),
        scan=scan,
        coverage=coverage,
        strict=strict,
        guard_enabled=settings.contradiction_guard_enabled,
        strict_coverage=settings.contradiction_guard_strict_coverage,
        read_from=read_from,
        warnings=warnings,
    )
    why, next_step = explain(found, settings)
    return replace(found, why=why, next_step=next_step)


def _outcome(claim: Claim, scan: ScanResult | None, coverage: Coverage | None) -> ClaimOutcome:
    if is_invariant(claim):
        return ClaimOutcome.UPHELD
    if claim.passed:
        return ClaimOutcome.PASSED
    if scan is None or coverage is None:
        return ClaimOutcome.UNCHANGED
    return outcome_of(scan, coverage)


def _lowered(confidence: float | None) -> float:
    """Lower a confidence to `MOST_CONFIDENCE`; also where there is none, or it is not a number."""
    return confidence if confidence is not None and confidence <= MOST_CONFIDENCE else MOST_CONFIDENCE
