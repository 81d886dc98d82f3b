"""Random CEL expressions for hypothesis: mostly well-formed, mostly of fitting types."""

from __future__ import annotations

from hypothesis import strategies as st

_INTS = st.one_of(
    st.integers(-3, 12),
    st.sampled_from([2**63 - 1, -(2**63), 2**63, 10**20]),
).map(str)
_TEXTS = st.one_of(
    st.text(st.characters(codec="utf-8", exclude_characters='"\\\n\r'), max_size=6),
    st.sampled_from(
        ["1Gi", "1.2.3", "10.0.0.1", "10.0.0.0/8", "https://a/b?c=d", "1h", "%s", "a(b"]
    ),
).map(lambda text: f'"{text}"')
_LEAVES = st.one_of(
    _INTS,
    _TEXTS,
    st.sampled_from(
        [
            *("true", "false", "null", "1.5", "2u", "[]", "{}", "x", "y", 'b"a"', "int", "device"),
            "device.driver",
            "device.attributes",
            'device.attributes["d"]',
            'device.attributes["d"].model',
            'device.attributes["d"].index',
            'device.attributes["d"].version',
            'device.capacity["d"].memory',
            "optional.none()",
            'timestamp("2024-01-01T00:00:00Z")',
            'duration("1h")',
        ]
    ),
)
_BINARY = st.sampled_from(
    ["+", "-", "*", "/", "%", "<", "<=", ">", ">=", "==", "!=", "in", "&&", "||"]
)
_FUNCTIONS = st.sampled_from(
    [
        *("size", "int", "uint", "double", "string", "bytes", "bool", "type", "dyn", "quantity"),
        *("semver", "isSemver", "ip", "isIP", "cidr", "isCIDR", "url", "isURL", "isQuantity"),
        *("sign", "optional.of", "optional.ofNonZeroValue", "lists.range", "strings.quote"),
        *("timestamp", "duration", "has", "format.named", "matches"),
    ]
)
_MEMBERS = st.sampled_from(
    [
        *("size", "first", "last", "sort", "reverse", "distinct", "flatten", "sum", "min", "max"),
        *("isSorted", "join", "trim", "lowerAscii", "hasValue", "value", "major", "isInteger"),
        *("asInteger", "asApproximateFloat", "family", "masked", "prefixLength", "getHost"),
        *("getQuery", "getHours", "getFullYear", "getMilliseconds", "unwrapOpt", "ip"),
    ]
)
_MEMBERS_OF_ONE = st.sampled_from(
    [
        *("contains", "startsWith", "endsWith", "matches", "find", "findAll", "split", "indexOf"),
        *("lastIndexOf", "charAt", "substring", "format", "join", "orValue", "or", "compareTo"),
        *("isGreaterThan", "isLessThan", "add", "sub", "containsIP", "containsCIDR", "includes"),
        *("validate", "flatten", "getHours", "getDate"),
    ]
)
_MACROS = st.sampled_from(
    ["all", "exists", "exists_one", "map", "filter", "optMap", "optFlatMap", "sortBy"]
)


def _composed(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    pair = st.tuples(inner, inner)
    return st.one_of(
        st.tuples(inner, _BINARY, inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
        inner.map(lambda a: f"!{a}"),
        inner.map(lambda a: f"dyn({a})"),
        inner.map(lambda a: f"-{a}"),
        st.tuples(inner, inner, inner).map(lambda t: f"({t[0]} ? {t[1]} : {t[2]})"),
        st.lists(inner, max_size=3).map(lambda parts: f"[{', '.join(parts)}]"),
        pair.map(lambda t: f"{{{t[0]}: {t[1]}}}"),
        pair.map(lambda t: f"{t[0]}[{t[1]}]"),
        pair.map(lambda t: f"{t[0]}[?{t[1]}]"),
        inner.map(lambda a: f"{a}.?model"),
        st.tuples(_FUNCTIONS, inner).map(lambda t: f"{t[0]}({t[1]})"),
        st.tuples(inner, _MEMBERS).map(lambda t: f"{t[0]}.{t[1]}()"),
        st.tuples(inner, _MEMBERS_OF_ONE, inner).map(lambda t: f"{t[0]}.{t[1]}({t[2]})"),
        st.tuples(inner, _MACROS, inner).map(lambda t: f"{t[0]}.{t[1]}(x, {t[2]})"),
        pair.map(lambda t: f"cel.bind(x, {t[0]}, {t[1]})"),
        st.tuples(inner, inner).map(lambda t: f"{t[0]}.transformList(x, y, {t[1]})"),
        st.tuples(inner, inner).map(lambda t: f"dyn({t[0]}).transformMap(x, y, {t[1]})"),
    )


EXPRESSIONS = st.recursive(
    st.one_of(_LEAVES, _LEAVES.map(lambda leaf: f"dyn({leaf})")), _composed, max_leaves=12
)
"""Expressions of any type."""

SELECTORS = st.one_of(
    EXPRESSIONS,
    st.tuples(EXPRESSIONS, EXPRESSIONS).map(lambda t: f"dyn({t[0]}) == dyn({t[1]})"),
    st.tuples(EXPRESSIONS, st.integers(0, 200)).map(lambda t: t[0][: t[1]]),
    st.text(max_size=40),
)
"""Expressions that often compile to a selector, and others that are no expressions at all."""
