"""The CEL rules in the schemas of custom resources (``x-kubernetes-validations``)."""

from typing import Any

import pytest

from simcluster.tests.contract.causes import INVALID, causes
from simcluster.tests.contract.custom_objects import define, definition, until_gone
from simcluster.tests.support.api_client import ApiClient, Reply

Json = dict[str, Any]

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GAUGES = "/apis/rules.example.com/v1/namespaces/default/gauges"
TEXT: Json = {"type": "string"}
NUMBER: Json = {"type": "integer"}


def rule(text: str, **fields: Any) -> Json:
    return {"rule": text, **fields}


def ruled(schema: Json, *rules: Json) -> Json:
    """A schema with rules."""
    return {**schema, "x-kubernetes-validations": list(rules)}


NAME_RULE = "!has(self.my__dash__name) || self.my__dash__name != 'bad'"
NOT_CHECKED = (
    "Invalid value: null: some validation rules were not checked because the object was "
    "invalid; correct the existing errors to complete validation"
)
PROPERTIES: Json = {
    "min": NUMBER,
    "max": NUMBER,
    "mode": ruled(TEXT, rule("self == oldSelf", message="mode is fixed")),
    "color": ruled(TEXT, rule("self in ['red', 'blue']")),
    "ratio": ruled(
        {"type": "number"},
        rule("self <= 0.5", messageExpression="self > 9.0 ? 'far too much' : 'too much'"),
    ),
    "since": ruled({**TEXT, "format": "date-time"}, rule("self.getFullYear() > 2000")),
    "wait": ruled({**TEXT, "format": "duration"}, rule("self < duration('1m')")),
    "my-name": TEXT,
    "level": ruled(
        NUMBER, rule("oldSelf.optMap(o, self >= o).orValue(true)", optionalOldSelf=True)
    ),
    "ports": {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        "items": ruled(
            {"type": "object", "required": ["name"], "properties": {"name": TEXT, "port": NUMBER}},
            rule("self.port >= oldSelf.port", message="may not shrink"),
        ),
    },
    "labels": {"type": "object", "additionalProperties": ruled(TEXT, rule("self.size() < 4"))},
    "limit": {**NUMBER, "nullable": True},
    "any": {"x-kubernetes-int-or-string": True},
}
SPEC = ruled(
    {"type": "object", "properties": PROPERTIES},
    rule(
        "!has(self.min) || !has(self.max) || self.min <= self.max",
        message="min exceeds max",
        fieldPath=".min",
        reason="FieldValueForbidden",
    ),
    rule(NAME_RULE),
    rule("!has(self.limit) || dyn(self.limit) == null || self.limit > 0", message="limit"),
    rule("!has(self.any) || type(self.any) == int || self.any.endsWith('%')", message="any"),
)
SCHEMA = ruled(
    {"type": "object", "properties": {"spec": SPEC}},
    rule("self.metadata.name.startsWith('g')", message="starts with g"),
)


def gauge_definition(schema: Json) -> Json:
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
    }
    return definition("Gauge", "rules.example.com", version)


def gauge(name: str = "g", **spec: Any) -> Json:
    return {
        "apiVersion": "rules.example.com/v1",
        "kind": "Gauge",
        "metadata": {"name": name},
        "spec": spec,
    }


async def merged(http: ApiClient, spec: Json) -> Reply:
    """Merge fields into the spec of the gauge g."""
    body, type_ = {"spec": spec}, "application/merge-patch+json"
    return await http.request("PATCH", f"{GAUGES}/g", body, type_)


@pytest.fixture
async def gauges(http: ApiClient) -> ApiClient:
    """A client of a cluster that has gauges, and none of them."""
    if (await http.get(f"{DEFINITIONS}/gauges.rules.example.com")).status == 404:
        await define(http, gauge_definition(SCHEMA))
    await http.delete(GAUGES)
    return http


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"min": 2, "max": 1}, ("FieldValueForbidden", "spec.min", "Forbidden: min exceeds max")),
        (
            {"color": "green"},
            (
                INVALID,
                "spec.color",
                "Invalid value: \"green\": failed rule: self in ['red', 'blue']",
            ),
        ),
        ({"ratio": 1}, (INVALID, "spec.ratio", "Invalid value: 1: too much")),
        (
            {"since": "1999-01-02T03:04:05Z"},
            (
                INVALID,
                "spec.since",
                'Invalid value: "1999-01-02T03:04:05Z": failed rule: self.getFullYear() > 2000',
            ),
        ),
        (
            {"wait": "90s"},
            (INVALID, "spec.wait", "Invalid value: \"90s\": failed rule: self < duration('1m')"),
        ),
        (
            {"my-name": "bad"},
            (
                INVALID,
                "spec",
                f"Invalid value: failed rule: {NAME_RULE}",
            ),
        ),
        ({"limit": 0}, (INVALID, "spec", "Invalid value: limit")),
        ({"any": "x"}, (INVALID, "spec", "Invalid value: any")),
        (
            {"labels": {"a": "long"}},
            (INVALID, "spec.labels[a]", 'Invalid value: "long": failed rule: self.size() < 4'),
        ),
    ],
)
async def test_an_object_that_breaks_a_rule_is_refused_with_its_message(
    gauges: ApiClient, spec: Json, expected: tuple[str, str, str]
) -> None:
    assert causes(await gauges.post(GAUGES, gauge(**spec))) == [expected]


async def test_an_object_that_keeps_the_rules_is_stored(gauges: ApiClient) -> None:
    spec: Json = {
        "min": 1,
        "max": 2,
        "mode": "a",
        "color": "red",
        "ratio": 0.5,
        "since": "2001-01-02T03:04:05Z",
        "wait": "59s",
        "my-name": "good",
        "level": 1,
        "ports": [{"name": "a", "port": 1}],
        "labels": {"a": "b"},
        "limit": None,
        "any": "5%",
    }
    assert (await gauges.create(GAUGES, gauge(**spec)))["spec"] == spec


async def test_a_rule_of_the_root_sees_the_name(gauges: ApiClient) -> None:
    refused = await gauges.post(GAUGES, gauge("other"))
    assert causes(refused) == [(INVALID, "<nil>", "Invalid value: starts with g")]


async def test_a_transition_rule_compares_with_the_value_before(gauges: ApiClient) -> None:
    await gauges.create(GAUGES, gauge(mode="a", level=2, ports=[{"name": "a", "port": 5}]))
    changed = {
        "mode": "b",
        "level": 1,
        "ports": [{"name": "b", "port": 1}, {"name": "a", "port": 4}],
    }
    assert causes(await merged(gauges, changed)) == [
        (INVALID, "spec.mode", 'Invalid value: "b": mode is fixed'),
        (
            INVALID,
            "spec.level",
            "Invalid value: 1: failed rule: oldSelf.optMap(o, self >= o).orValue(true)",
        ),
        (INVALID, "spec.ports[1]", "Invalid value: may not shrink"),
    ]
    changed = {"level": 3, "ports": [{"name": "b", "port": 1}, {"name": "a", "port": 6}]}
    assert (await merged(gauges, changed)).status == 200


async def test_rules_are_not_checked_for_an_object_that_is_invalid_otherwise(
    gauges: ApiClient,
) -> None:
    assert causes(await gauges.post(GAUGES, gauge(min="x", color="green"))) == [
        (
            "FieldValueTypeInvalid",
            "spec.min",
            'Invalid value: "string": spec.min in body must be of type integer: "string"',
        ),
        (
            INVALID,
            "<nil>",
            NOT_CHECKED,
        ),
    ]


async def test_values_that_do_not_change_may_break_a_schema_that_became_stricter(
    gauges: ApiClient,
) -> None:
    await gauges.create(GAUGES, gauge(min=5, color="red"))
    path = f"{DEFINITIONS}/gauges.rules.example.com"
    stricter = gauge_definition(SCHEMA)
    properties = {
        **PROPERTIES,
        "min": {**NUMBER, "maximum": 3},
        "color": ruled(TEXT, rule("self == 'blue'", message="only blue")),
    }
    root = {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}
    stricter["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = root
    too_large = "spec.min in body should be less than or equal to 3"
    stored = (await gauges.get(path)).body
    changed = await gauges.put(path, {**stored, "spec": stricter["spec"]})
    assert changed.status == 200, changed.text
    try:
        assert (await merged(gauges, {"max": 9})).status == 200
        assert causes(await merged(gauges, {"color": "pink", "min": 6})) == [
            (
                INVALID,
                "spec.min",
                f"Invalid value: 6: {too_large}",
            ),
            (INVALID, "spec.color", 'Invalid value: "pink": only blue'),
        ]
    finally:
        await gauges.delete(path)
        await until_gone(gauges, "gauges.rules.example.com")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("self.nosuch > 1", "compilation failed: ERROR: <input>:1:5: undefined field 'nosuch'"),
        ("self.min +", "compilation failed: ERROR: <input>:1:11: Syntax error"),
        ("self.min", "cel expression must evaluate to a bool"),
        ("dyn(true)", "cel expression must evaluate to a bool"),
        ("self.kept == 1", "compilation failed: ERROR: <input>:1:5: undefined field 'kept'"),
        ("self.open.a == 1", "compilation failed: ERROR: <input>:1:10: undefined field 'a'"),
        ("self.none == null", "found no matching overload for '_==_' applied to '(int, null)'"),
        ("'a'.includes('a')", "undeclared reference to 'includes'"),
        ("self.min == 'a'", "compilation failed: ERROR: <input>:1:10: found no matching overload"),
    ],
)
async def test_a_rule_that_does_not_compile_is_refused_with_its_definition(
    http: ApiClient, text: str, why: str
) -> None:
    properties = {
        "min": NUMBER,
        "none": {**NUMBER, "nullable": True},
        "kept": {"x-kubernetes-preserve-unknown-fields": True},
        "open": {"type": "object", "additionalProperties": True},
    }
    spec = ruled({"type": "object", "properties": properties}, rule(text))
    root = {"type": "object", "properties": {"spec": spec}}
    refused = definition(
        "Rejected", "rules.example.com", *gauge_definition(root)["spec"]["versions"]
    )
    [(reason, field, message)] = causes(await http.post(DEFINITIONS, refused))
    place = "spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule"
    assert (reason, field) == (INVALID, place)
    assert why in message
    assert '"Rule":' in message


PLACE = "spec.validation.openAPIV3Schema.properties[spec]"
RULE = "x-kubernetes-validations[0]"
FORBIDDEN = "FieldValueForbidden"
ADVICE = (
    "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, "
    "maps, and strings are declared)"
)
TOTAL = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"
CONTRIBUTED = (
    "Forbidden: contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 "
    "schema"
)


def exceeds(what: str, factor: str) -> str:
    return f"Forbidden: {what} exceeds budget by factor of {factor} {ADVICE}"


def rejected(spec: Json) -> Json:
    """A definition that is not stored, whatever the answer."""
    root = {"type": "object", "properties": {"spec": spec}}
    versions = gauge_definition(root)["spec"]["versions"]
    return definition("Rejected", "rules.example.com", *versions)


def of(item: Json, limit: int | None = None) -> Json:
    """A list."""
    return {"type": "array", "items": item} | ({} if limit is None else {"maxItems": limit})


def texts(limit: int) -> Json:
    return {**TEXT, "maxLength": limit}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (ruled(of(TEXT), rule("self.all(x, x == 'a')")), []),
        (of(ruled(texts(50), rule("self.size() < 5")), 10), []),
        (
            of(ruled(texts(50), rule("self.contains('abcdefghijkl')"))),
            [(FORBIDDEN, f"items.{RULE}.rule", exceeds("estimated rule cost", "4.3x"))],
        ),
        (of(ruled(texts(50), rule("self.contains('abcdefghijkl')")), 10_000), []),
        (
            ruled(of(texts(10)), rule("self.all(x, self.exists_one(y, x == y))")),
            [
                (FORBIDDEN, f"{RULE}.rule", exceeds("estimated rule cost", "more than 100x")),
                (FORBIDDEN, f"{RULE}.rule", CONTRIBUTED),
                (FORBIDDEN, "", exceeds(TOTAL, "more than 100x")),
            ],
        ),
        (ruled(of(texts(10), 100), rule("self.all(x, self.exists_one(y, x == y))")), []),
        (
            ruled(TEXT, rule("self.size() < 4", messageExpression="self + self + self")),
            [],
        ),
        (
            ruled({"type": "number"}, rule("self < 1.0", messageExpression="'a' + string(self)")),
            [
                (
                    FORBIDDEN,
                    f"{RULE}.messageExpression",
                    exceeds("estimated messageExpression cost", "more than 100x"),
                ),
                (FORBIDDEN, f"{RULE}.messageExpression", CONTRIBUTED),
                (FORBIDDEN, "", exceeds(TOTAL, "more than 100x")),
            ],
        ),
    ],
)
async def test_a_rule_whose_estimated_cost_is_too_high_is_refused(
    http: ApiClient, spec: Json, expected: list[tuple[str, str, str]]
) -> None:
    reply = await http.post(f"{DEFINITIONS}?dryRun=All", rejected(spec))
    assert reply.status == (422 if expected else 201), reply.text
    root = PLACE.removesuffix(".properties[spec]")
    assert (causes(reply) if expected else []) == [
        (reason, f"{PLACE}.{field}" if field else root, message)
        for reason, field, message in expected
    ]


@pytest.mark.parametrize(
    ("broken", "field", "message"),
    [
        ({"rule": " "}, "rule", "Required value: rule is not specified"),
        ({"message": " "}, "message", 'Invalid value: " ": must be non-empty if specified'),
        (
            {"rule": "self.x\n== 'a'"},
            "message",
            "Required value: message must be specified if rule contains line breaks",
        ),
        (
            {"messageExpression": " "},
            "messageExpression",
            "Required value: messageExpression must be non-empty if specified",
        ),
        (
            {"messageExpression": "1"},
            "messageExpression",
            (
                'Invalid value: {"Rule":"self.x == \'a\'","Message":"","MessageExpression":"1",'
                '"Reason":null,"FieldPath":"","OptionalOldSelf":null}: '
                "messageExpression must evaluate to a string"
            ),
        ),
        ({"fieldPath": ".y"}, "fieldPath", 'Invalid value: ".y": must be a valid path'),
        (
            {"optionalOldSelf": True},
            "optionalOldSelf",
            "Invalid value: true: may not be set if oldSelf is not used in rule",
        ),
    ],
)
async def test_a_rule_with_a_wrong_field_is_refused(
    http: ApiClient, broken: Json, field: str, message: str
) -> None:
    schema = {"type": "object", "properties": {"x": TEXT}}
    body = rejected(ruled(schema, {"rule": "self.x == 'a'", **broken}))
    [(_, place, found)] = causes(await http.post(f"{DEFINITIONS}?dryRun=All", body))
    assert (place, found) == (f"{PLACE}.{RULE}.{field}", message)


@pytest.mark.parametrize("list_type", ["set", "atomic"])
async def test_a_rule_may_not_compare_items_that_have_no_identity(
    http: ApiClient, list_type: str
) -> None:
    items = ruled(texts(5), rule("self == oldSelf"))
    spec = {**of(items), "x-kubernetes-list-type": list_type}
    [(_, place, found)] = causes(await http.post(f"{DEFINITIONS}?dryRun=All", rejected(spec)))
    why = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {PLACE}"
    assert (place, found) == (
        f"{PLACE}.items.{RULE}.rule",
        f'Invalid value: "self == oldSelf": {why}',
    )
