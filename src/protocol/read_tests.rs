use std::fmt::Debug;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::*;

#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Everything {
    text: String,
    flag: bool,
    natural: u32,
    whole: i64,
    float: f64,
    #[serde(default)]
    absent: Option<String>,
    no_value: Option<u64>,
    list: Vec<Shape>,
    pair: (String, u64),
    by_name: Named<u32>,
    any: Value,
}

record!(closed Everything:
    "text" => text, "flag" => flag, "natural" => natural, "whole" => whole, "float" => float, "absent" => absent = None,
    "noValue" => no_value = None, "list" => list, "pair" => pair, "byName" => by_name, "any" => any,
);

#[derive(Debug, PartialEq, Deserialize)]
enum Shape {
    Point,
    Circle(u64),
    Line((u64, u64)),
    Square { side: f64 },
}

variants!(Shape:
    "Point" => Point, "Circle" => Circle(radius), "Line" => Line(ends), "Square" => Square { "side" => side },
);

#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Word {
    Yes,
    No,
}

words!(Word: "yes" => Yes, "no" => No);

#[derive(Debug, PartialEq, Deserialize)]
struct Settings {
    #[serde(default = "seven")]
    count: u64,
    #[serde(default, alias = "maxTokens")]
    most: Option<usize>,
}

record!(Settings: "count" => count = seven(), "most|maxTokens" => most = None);

fn seven() -> u64 {
    7
}

/// What serde_json says of it, without the place.
fn peer<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|error| {
        let message = error.to_string();
        let cut = message.find(" at line ").unwrap_or(message.len());
        message[..cut].to_owned()
    })
}

fn both_say<T: DeserializeOwned + for<'a> Member<'a> + PartialEq + Debug>(text: &str) {
    let ours = from_text::<T>(text).map_err(|Mismatch(message)| message);
    assert_eq!(ours, peer::<T>(text), "{text}");
}

#[test]
fn every_kind_of_value_is_read_as_serde_json_reads_it() {
    let text = r#"{"text":"a\n","flag":true,"natural":7,"whole":-7,"float":1.5,"noValue":null,
        "list":["Point",{"Point":null},{"Circle":1},{"Line":[1,2]},{"Square":{"side":2}}],"pair":["a",1],
        "byName":{"z":1,"a":4294967295},"any":{"z":1.0,"big":123456789012345678901234567890,"a":[null,1e+400]}}"#;
    both_say::<Everything>(text);
    let any = from_text::<Everything>(text).map(|everything| everything.any.to_string());
    let kept = r#"{"z":1.0,"big":123456789012345678901234567890,"a":[null,1e+400]}"#;
    assert_eq!(any.as_deref(), Ok(kept), "numbers keep every digit");
}

#[test]
fn what_is_wrong_is_said_as_serde_json_says_it() {
    let whole = json!({
        "text": "a", "flag": true, "natural": 7, "whole": -7, "float": 1.5, "noValue": null, "list": [],
        "pair": ["a", 1], "byName": {}, "any": null,
    });
    for (name, wrong) in [
        ("text", json!(1)),
        ("text", json!(null)),
        ("text", json!(["a"])),
        ("text", json!({})),
        ("flag", json!("true")),
        ("natural", json!(-1)),
        ("natural", json!(1.5)),
        ("natural", json!(4_294_967_296_u64)),
        ("natural", json!("7")),
        ("whole", json!(true)),
        ("float", json!("1")),
        ("noValue", json!("1")),
        ("list", json!({})),
        ("list", json!([{ "Circle": "a" }])),
        ("list", json!([{ "Square": {} }])),
        ("list", json!([{ "Line": [1] }])),
        ("list", json!(["Triangle"])),
        ("pair", json!(["a"])),
        ("byName", json!([])),
        ("byName", json!({ "a": 4_294_967_296_u64 })),
        ("more", json!(1)),
    ] {
        let mut value = whole.clone();
        value[name] = wrong;
        both_say::<Everything>(&value.to_string());
    }
    both_say::<Everything>(r#"{"text":"a"}"#);
    both_say::<Everything>("7");
    both_say::<Word>(r#""maybe""#);
}

#[test]
fn members_may_have_a_default_another_name_and_escapes_in_it() {
    for text in [
        "{}",
        r#"{"count":1,"more":[{}]}"#,
        r#"{"maxTokens":2}"#,
        r#"{"mo\u0073t":3}"#,
        r#"{"most":1,"maxTokens":2}"#,
        r#"{"most":-1}"#,
    ] {
        both_say::<Settings>(text);
    }
    both_say::<Vec<Word>>(r#"["no","yes"]"#);
}

#[test]
fn what_only_serde_json_takes_is_refused() {
    let refused = |text| from_text::<Shape>(text).map_err(|fault| fault.to_string());
    let long = "invalid length 3, expected a tuple of size 2";
    assert_eq!(refused(r#"{"Line":[1,2,3]}"#), Err(long.to_owned()));
    let list = "invalid type: sequence, expected struct variant Shape::Square";
    assert_eq!(refused(r#"{"Square":[2.0]}"#), Err(list.to_owned()));
    let two = "invalid type: map, expected enum Shape";
    assert_eq!(refused(r#"{"Point":null,"Circle":1}"#), Err(two.to_owned()));
    assert_eq!(
        refused("[]"),
        Err("invalid type: sequence, expected enum Shape".to_owned())
    );
    let word = from_text::<Word>("7").map_err(|fault| fault.to_string());
    assert_eq!(
        word,
        Err("invalid type: integer `7`, expected enum Word".to_owned())
    );
}

#[test]
fn a_text_that_is_no_json_is_named_by_its_place() {
    let fault = from_text::<Value>("{\n ?").map_err(|fault| fault.to_string());
    let expected = "key must be a string at line 2 column 2";
    assert_eq!(fault, Err(expected.to_owned()));
}
