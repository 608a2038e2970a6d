//! Our subset of JSON Schema against the official cases: what is valid is not refused, and what is invalid passes only
//! where a keyword is one we say we ignore. Up to draft 7 a `$ref` silences its siblings; since 2019-09, and here, it does
//! not.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test stops at the first surprise"
)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use io_bridge::tool::schema::Schema;
use serde_json::Value;

/// Files of the suite about keywords that are ignored (see `tool::schema`), where invalid data may pass.
const IGNORED: &[&str] = &[
    "dependencies",
    "dependentSchemas",
    "format",
    "pattern",
    "patternProperties",
    "unevaluatedItems",
    "unevaluatedProperties",
];

/// Files that mix an ignored keyword with others, by how many of their cases pass for it.
const PARTLY_IGNORED: &[(&str, &str, u32)] = &[
    ("draft4", "additionalProperties", 2),
    ("draft4", "properties", 3),
    ("draft6", "additionalProperties", 2),
    ("draft6", "properties", 3),
    ("draft7", "additionalProperties", 2),
    ("draft7", "properties", 3),
    ("draft2019-09", "additionalProperties", 2),
    ("draft2019-09", "properties", 3),
    ("draft2019-09", "ref", 1),
];

/// Where cargo keeps the crate that ships the suite.
fn suite() -> PathBuf {
    let cargo = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked", "--manifest-path"])
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml"))
        .output()
        .unwrap();
    assert!(
        cargo.status.success(),
        "{}",
        String::from_utf8_lossy(&cargo.stderr)
    );
    let metadata: Value = serde_json::from_slice(&cargo.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let package = packages
        .iter()
        .find(|package| package["name"] == "json_schema_test_suite")
        .unwrap();
    let manifest = Path::new(package["manifest_path"].as_str().unwrap());
    let folder = "path/to/JSON-Schema-Test-Suite/repository/tests";
    manifest.parent().unwrap().join(folder)
}

#[derive(Default, Debug)]
struct Tally {
    right: u32,
    /// The schema does not compile: not checked, with a warning.
    unchecked: u32,
    /// Invalid data that passes.
    passed: u32,
    /// Valid data that is refused.
    refused: Vec<String>,
}

fn judge(file: &Path, tally: &mut Tally) {
    let groups: Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    for group in groups.as_array().unwrap() {
        let schema = Schema::compile(&group["schema"]);
        for case in group["tests"].as_array().unwrap() {
            let is_valid = case["valid"].as_bool().unwrap();
            match schema.as_ref().map(|schema| schema.check(&case["data"])) {
                Err(_) => tally.unchecked += 1,
                Ok(checked) if checked.is_ok() == is_valid => tally.right += 1,
                Ok(Ok(())) => tally.passed += 1,
                Ok(Err(_)) => {
                    let words = |value: &Value| value["description"].as_str().unwrap().to_owned();
                    tally.refused.push(format!("{}: {}", words(group), words(case)));
                }
            }
        }
    }
}

#[test]
fn the_official_cases_are_judged_as_the_subset_promises() {
    let suite = suite();
    for draft in ["draft4", "draft6", "draft7", "draft2019-09"] {
        let mut files: Vec<PathBuf> = fs::read_dir(suite.join(draft))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
            .collect();
        files.sort();
        let mut whole = Tally::default();
        let (mut passed, mut refused) = (BTreeMap::new(), Vec::new());
        for file in files {
            let name = file.file_stem().unwrap().to_string_lossy().into_owned();
            let mut tally = Tally::default();
            judge(&file, &mut tally);
            refused.extend(tally.refused.iter().map(|case| format!("{name}: {case}")));
            if tally.passed > 0 && !IGNORED.contains(&name.as_str()) {
                passed.insert(name, tally.passed);
            }
            whole.right += tally.right;
            whole.unchecked += tally.unchecked;
            whole.passed += tally.passed;
        }
        let count = whole.right + whole.unchecked + whole.passed + u32::try_from(refused.len()).unwrap();
        println!(
            "{draft}: {count} cases, {} judged right, {} of schemas we do not check, {} pass by an ignored keyword",
            whole.right, whole.unchecked, whole.passed
        );
        let expected: BTreeMap<String, u32> = PARTLY_IGNORED
            .iter()
            .filter(|(of, _, _)| *of == draft)
            .map(|(_, name, count)| ((*name).to_owned(), *count))
            .collect();
        assert_eq!(passed, expected, "{draft} lets more or less pass than it should");
        let overridden = ["ref: ref overrides any sibling keywords: ref valid, maxItems ignored"];
        let expected: &[&str] = if draft == "draft2019-09" { &[] } else { &overridden };
        assert_eq!(refused, expected, "{draft} refuses what is valid");
    }
}
