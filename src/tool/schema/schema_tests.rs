use serde_json::json;

use super::*;

fn value(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn schema(text: &str) -> Schema {
    Schema::compile(&value(text)).unwrap()
}

/// The violations as texts, for whole comparisons.
fn violations(schema_text: &str, value_text: &str) -> Vec<String> {
    let result = schema(schema_text).check(&value(value_text));
    result
        .err()
        .unwrap_or_default()
        .iter()
        .map(Violation::to_string)
        .collect()
}

/// Schema, values that fit, values that do not.
const TABLE: &[(&str, &[&str], &[&str])] = &[
    ("{}", &["null", "1", r#""x""#, "[]", "{}"], &[]),
    ("true", &["1"], &[]),
    ("false", &[], &["1"]),
    (r#"{"type":"null"}"#, &["null"], &["0", "false", r#""""#]),
    (r#"{"type":"boolean"}"#, &["true", "false"], &["0", r#""true""#]),
    (
        r#"{"type":"integer"}"#,
        &["1", "1.0", "1e3", "12345678901234567890123"],
        &["1.5", r#""1""#, "1e-1"],
    ),
    (r#"{"type":"number"}"#, &["1", "1.5"], &[r#""1""#, "null"]),
    (r#"{"type":"string"}"#, &[r#""""#], &["1"]),
    (r#"{"type":"array"}"#, &["[]"], &["{}"]),
    (r#"{"type":"object"}"#, &["{}"], &["[]"]),
    (r#"{"type":["string","null"]}"#, &["null", r#""x""#], &["1"]),
    (
        r#"{"enum":["a",1,{"x":[1]}]}"#,
        &[r#""a""#, "1.0", r#"{"x":[1.0]}"#],
        &[r#""b""#, "2", r#"{"x":[1,1]}"#],
    ),
    (
        r#"{"const":{"a":1,"b":2}}"#,
        &[r#"{"b":2.0,"a":1}"#],
        &[r#"{"a":1}"#, r#"{"a":1,"b":3}"#],
    ),
    (
        r#"{"minimum":1,"maximum":2}"#,
        &["1", "2", "1.5", r#""x""#],
        &["0.999", "2.0000000000000000000001"],
    ),
    (
        r#"{"exclusiveMinimum":1,"exclusiveMaximum":2}"#,
        &["1.5"],
        &["1", "2"],
    ),
    (
        r#"{"minimum":1,"exclusiveMinimum":true,"maximum":2,"exclusiveMaximum":false}"#,
        &["2", "1.1"],
        &["1", "2.1"],
    ),
    (r#"{"multipleOf":0.1}"#, &["0.3", "1", "-0.7"], &["0.35"]),
    (
        r#"{"minLength":2,"maxLength":3}"#,
        &[r#""äö""#, r#""😀😀😀""#, "1"],
        &[r#""a""#, r#""abcd""#],
    ),
    (r#"{"pattern":"^(a+)+$","format":"email"}"#, &[r#""b""#], &[]),
    (
        r#"{"minItems":1,"maxItems":2.0}"#,
        &["[1]", "[1,2]", "{}"],
        &["[]", "[1,2,3]"],
    ),
    (
        r#"{"uniqueItems":true}"#,
        &["[1,2]", r#"[1,"1"]"#],
        &["[1,1.0]", r#"[{"a":1,"b":2},{"b":2,"a":1}]"#],
    ),
    (
        r#"{"items":{"type":"string"}}"#,
        &["[]", r#"["a"]"#],
        &[r#"["a",1]"#],
    ),
    (
        r#"{"prefixItems":[{"type":"string"}],"items":false}"#,
        &["[]", r#"["a"]"#],
        &["[1]", r#"["a",1]"#],
    ),
    (
        r#"{"items":[{"type":"string"}],"additionalItems":{"type":"number"}}"#,
        &[r#"["a",1]"#],
        &[r#"["a","b"]"#, "[1]"],
    ),
    (
        r#"{"contains":{"type":"number"}}"#,
        &[r#"["a",1]"#],
        &["[]", r#"["a"]"#],
    ),
    (
        r#"{"contains":{"type":"number"},"minContains":0,"maxContains":1}"#,
        &["[]", "[1]"],
        &["[1,2]"],
    ),
    (
        r#"{"minProperties":1,"maxProperties":1}"#,
        &[r#"{"a":1}"#],
        &["{}", r#"{"a":1,"b":2}"#],
    ),
    (r#"{"required":["a"]}"#, &[r#"{"a":null}"#, "[]"], &["{}"]),
    (
        r#"{"properties":{"a":{"type":"string"}}}"#,
        &["{}", r#"{"a":"x","b":1}"#],
        &[r#"{"a":1}"#],
    ),
    (
        r#"{"properties":{"a":true},"additionalProperties":false}"#,
        &[r#"{"a":1}"#],
        &[r#"{"a":1,"b":1}"#],
    ),
    (
        r#"{"additionalProperties":{"type":"number"}}"#,
        &[r#"{"a":1}"#],
        &[r#"{"a":"x"}"#],
    ),
    (
        r#"{"patternProperties":{"^x":{}},"additionalProperties":false}"#,
        &[r#"{"x1":1,"a":1}"#],
        &[],
    ),
    (
        r#"{"propertyNames":{"maxLength":2}}"#,
        &[r#"{"ab":1}"#],
        &[r#"{"abc":1}"#],
    ),
    (
        r#"{"dependentRequired":{"a":["b"]}}"#,
        &["{}", r#"{"a":1,"b":1}"#],
        &[r#"{"a":1}"#],
    ),
    (r#"{"allOf":[{"minimum":1},{"maximum":2}]}"#, &["1"], &["0", "3"]),
    (
        r#"{"anyOf":[{"type":"string"},{"minimum":5}]}"#,
        &[r#""x""#, "5", "null"],
        &["4"],
    ),
    (
        r#"{"oneOf":[{"multipleOf":2},{"multipleOf":3}]}"#,
        &["2", "3"],
        &["1", "6"],
    ),
    (r#"{"not":{"type":"string"}}"#, &["1"], &[r#""x""#]),
    (
        r#"{"if":{"properties":{"k":{"const":1}}},"then":{"required":["a"]},"else":{"required":["b"]}}"#,
        &[r#"{"k":1,"a":1}"#, r#"{"k":2,"b":1}"#],
        &[r#"{"k":1}"#, r#"{"k":2,"a":1}"#],
    ),
    (r#"{"if":{"const":1}}"#, &["1", "2"], &[]),
    (
        r##"{"$ref":"#/$defs/a~1b%20c","$defs":{"a/b c":{"type":"string"}},"maxLength":1}"##,
        &[r#""x""#],
        &["1", r#""xx""#],
    ),
    (
        r##"{"type":"object","properties":{"next":{"$ref":"#"}},"additionalProperties":false}"##,
        &["{}", r#"{"next":{"next":{}}}"#],
        &[r#"{"next":{"next":{"x":1}}}"#, r#"{"next":1}"#],
    ),
];

#[test]
fn each_keyword_judges_as_the_standard_says() {
    for (schema_text, fitting, other) in TABLE {
        for text in *fitting {
            assert_eq!(violations(schema_text, text), [""; 0], "{schema_text} {text}");
        }
        for text in *other {
            assert_ne!(violations(schema_text, text), [""; 0], "{schema_text} {text}");
        }
    }
}

#[test]
fn violations_say_what_to_mend() {
    let schema = r##"{
        "type": "object",
        "properties": {
            "color": {"enum": ["red", "blue"]},
            "count": {"type": "integer", "minimum": 1},
            "items": {"type": "array", "items": {"$ref": "#/$defs/item"}},
            "kind": {"anyOf": [{"type": "string"}, {"type": "object", "required": ["id"]}]}
        },
        "required": ["color", "title"],
        "additionalProperties": false,
        "$defs": {"item": {"type": ["string", "null"], "maxLength": 3}}
    }"##;
    let value = r#"{"color": "green", "count": 0.5, "items": ["abcd", 7], "kind": {}, "colour": 1}"#;
    assert_eq!(
        violations(schema, value),
        [
            "the value must have the property `title`",
            r#"`/color` must be one of "red", "blue""#,
            "`/count` must be an integer, not 0.5",
            "`/count` must be at least 1",
            "`/items/0` must have at most 3 characters, not 4",
            "`/items/1` must be a string or null, not 7",
            "`/kind` must fit one of 2 alternatives",
            "`/kind` must be a string, not an object",
        ]
    );
    assert_eq!(
        violations(schema, r#"{"color":"red","title":1,"colour":1}"#),
        [
            "the value must not have the property `title`",
            "the value must not have the property `colour`"
        ]
    );
}

#[test]
fn the_nearest_alternative_is_explained() {
    let shape = r#"{"oneOf":[
        {"properties":{"type":{"const":"circle"},"radius":{"type":"number"}},"required":["type","radius"]},
        {"properties":{"type":{"const":"box"},"width":{"type":"number"}},"required":["type","width"]}
    ]}"#;
    assert_eq!(
        violations(shape, r#"{"type":"box","width":"wide"}"#),
        [
            "the value must fit one of 2 alternatives",
            "`/width` must be a number, not a string"
        ]
    );
}

#[test]
fn violations_are_few() {
    let result = schema(r#"{"items":{"type":"string"}}"#).check(&json!([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]));
    assert_eq!(
        result.map_err(|violations| violations.len()),
        Err(VIOLATIONS_MAX_COUNT)
    );
    let result = schema(r#"{"required":["1","2","3","4","5","6","7","8","9"]}"#).check(&json!({}));
    assert_eq!(
        result.map_err(|violations| violations.len()),
        Err(VIOLATIONS_MAX_COUNT)
    );
}

#[test]
fn what_is_no_schema_is_refused_with_its_place() {
    let malformed = |pointer: &str, keyword| SchemaFault::MalformedKeyword {
        pointer: pointer.to_owned(),
        keyword,
    };
    let unknown = |pointer: &str| SchemaFault::UnknownReference {
        pointer: pointer.to_owned(),
    };
    let not_a_schema = |pointer: &str| SchemaFault::NotASchema {
        pointer: pointer.to_owned(),
    };
    let table = [
        ("1", not_a_schema("")),
        (
            r#"{"properties":{"a/b":"string"}}"#,
            not_a_schema("/properties/a~1b"),
        ),
        (r#"{"type":"text"}"#, malformed("", "type")),
        (r#"{"type":[1]}"#, malformed("", "type")),
        (r#"{"items":{"enum":"a"}}"#, malformed("/items", "enum")),
        (r#"{"required":true}"#, malformed("", "required")),
        (r#"{"minLength":-1}"#, malformed("", "minLength")),
        (r#"{"minLength":1.5}"#, malformed("", "minLength")),
        (r#"{"minimum":"1"}"#, malformed("", "minimum")),
        (r#"{"multipleOf":0}"#, malformed("", "multipleOf")),
        (r#"{"anyOf":{}}"#, malformed("", "anyOf")),
        (r#"{"properties":[]}"#, malformed("", "properties")),
        (r#"{"$ref":1}"#, malformed("", "$ref")),
        (
            r#"{"items":{"$ref":"https://example.com/a.json"}}"#,
            unknown("/items"),
        ),
        (r##"{"items":{"$ref":"#/nowhere"}}"##, unknown("/items")),
        (r##"{"$ref":"#anchor"}"##, unknown("")),
        (r##"{"$dynamicRef":"#a"}"##, unknown("")),
        (r##"{"$ref":"#"}"##, SchemaFault::EndlessReference),
        (
            r##"{"$defs":{"a":{"anyOf":[{"$ref":"#/$defs/b"}]},"b":{"not":{"$ref":"#/$defs/a"}}},"$ref":"#/$defs/a"}"##,
            SchemaFault::EndlessReference,
        ),
    ];
    for (text, fault) in table {
        assert_eq!(Schema::compile(&value(text)).err(), Some(fault), "{text}");
    }
}

#[test]
fn size_is_bounded() {
    let many: Vec<Value> = (0..10_000).map(|_| json!({})).collect();
    assert_eq!(
        Schema::compile(&json!({ "anyOf": many })).err(),
        Some(SchemaFault::TooLarge)
    );
    let deep = (0..130).fold(json!({}), |inner, _| json!({ "items": inner }));
    assert_eq!(Schema::compile(&deep).err(), Some(SchemaFault::TooLarge));
}

#[test]
fn a_chain_of_references_is_followed_as_far_as_the_stack_allows() {
    let chain = |count: usize| {
        let link = |index| {
            (
                format!("d{index}"),
                json!({ "$ref": format!("#/$defs/d{}", index + 1) }),
            )
        };
        let links = (0..count)
            .map(link)
            .chain([(format!("d{count}"), json!({ "type": "string" }))]);
        let defs: serde_json::Map<_, _> = links.collect();
        Schema::compile(&json!({ "$ref": "#/$defs/d0", "$defs": defs })).unwrap()
    };
    assert_eq!(
        chain(200).check(&json!(1)),
        Err(vec![Violation {
            pointer: String::new(),
            message: "must be a string, not 1".to_owned()
        }])
    );
    assert_eq!(chain(5_000).check(&json!(1)), Ok(()));
}

#[test]
fn alternatives_that_multiply_end_in_time() {
    let doubling = r##"{"anyOf":[{"properties":{"a":{"$ref":"#"}},"required":["x"]},{"properties":{"a":{"$ref":"#"}},"required":["y"]}]}"##;
    let deep = (0..60).fold(json!({}), |inner, _| json!({ "a": inner }));
    // Whatever the verdict, it comes.
    let _ = schema(doubling).check(&deep);
    let long: Vec<u32> = (0..20_000).collect();
    assert_eq!(schema(r#"{"uniqueItems":true}"#).check(&json!(long)), Ok(()));
}

#[test]
#[expect(clippy::disallowed_methods, reason = "tests run natively")]
fn work_is_bounded_whatever_the_keyword() {
    let numbers = |count: usize| Value::Array((0..count).map(|number| json!(number)).collect());
    let long = "x".repeat(1_000_000);
    let texts = |last: &str| json!([format!("{long}a"), format!("{long}b"), format!("{long}{last}")]);
    let names: Vec<String> = (0..4000).map(|number| format!("p{number}")).collect();
    let objects = Value::Array(vec![json!({}); 4000]);
    let wide = |count: usize| Value::Array(vec![numbers(count); 400]);
    for (schema, value) in [
        // No application of a keyword at all: the empty schema fits everything.
        (json!({ "contains": {}, "minContains": 1 }), numbers(1_000_000)),
        (
            json!({ "items": { "contains": {} } }),
            Value::Array(vec![numbers(1000); 1000]),
        ),
        (json!({ "uniqueItems": true }), numbers(20_000)),
        // Each comparison goes deep.
        (json!({ "uniqueItems": true }), wide(2000)),
        (
            json!({ "items": { "enum": [texts("c"), texts("d")] } }),
            json!(vec![texts("e"); 50]),
        ),
        (json!({ "items": { "required": names } }), objects.clone()),
        (
            json!({ "items": { "dependentRequired": { "a": names } } }),
            objects,
        ),
        (
            json!({ "items": { "allOf": vec![json!({ "maxLength": 9_000_000 }); 200] } }),
            json!(vec![long.clone(); 40]),
        ),
    ] {
        let schema_text = schema.to_string().chars().take(60).collect::<String>();
        let schema = Schema::compile(&schema).unwrap();
        let started = std::time::Instant::now();
        let _ = schema.check(&value);
        // Generous: unoptimised, on a busy machine. Without a bound these take minutes.
        assert!(
            started.elapsed().as_secs() < 5,
            "{:?} {}",
            started.elapsed(),
            schema_text
        );
    }
}

#[test]
fn what_a_used_up_check_has_not_seen_counts_as_fitting() {
    let schema = json!({ "uniqueItems": true, "contains": { "const": -1 }, "not": { "maxItems": 1 } });
    let schema = Schema::compile(&schema).unwrap();
    let many: Vec<Value> = (0..5000).map(|number| json!(number)).collect();
    assert_eq!(schema.check(&Value::Array(many)), Ok(()));
    assert!(schema.check(&json!([1, 1])).is_err());
}
