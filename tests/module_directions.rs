//! Who may use whom, read from the sources: never upward, never sideways between codecs, the platform only in `edge` and
//! behind `platform.rs`.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// A module, and what of the crate it may name.
const DIRECTIONS: &[(&str, &[&str])] = &[
    ("protocol", &[]),
    ("binding", &["protocol"]),
    ("provider", &["protocol", "binding"]),
    (
        "tool",
        &["protocol", "binding", "provider::HttpRequest", "provider::Secret"],
    ),
    ("store", &["protocol"]),
    (
        "config",
        &[
            "protocol",
            "provider::table",
            "tool::names",
            "tool::template",
            "api::jwt_rules",
        ],
    ),
    ("run", &["protocol", "provider", "tool", "store", "config"]),
    ("api", &["protocol"]),
    (
        "edge",
        &[
            "protocol", "binding", "provider", "tool", "store", "config", "run", "api",
        ],
    ),
];

/// The one file outside `edge` that may touch the platform: what it does is the standard library's.
const OF_PLATFORM: &str = "platform";

/// Files all may use.
const FOR_ALL: &[&str] = &[OF_PLATFORM, "beside", "list"];

/// Crates only `edge` and that file may touch.
const PLATFORM: &[&str] = &[
    "worker",
    "js_sys",
    "web_sys",
    "wasm_bindgen",
    "wasm_bindgen_futures",
];

/// What codecs may share inside `provider`.
const SHARED_BY_CODECS: &[&str] = &[
    "content",
    "refusal",
    "sse_answer",
    "table",
    "tool_call_merge",
    "turns",
    "upstream_ids",
    "wire_text",
];

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn src() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// The file's code with its comments cut off.
fn code(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    let lines = text
        .lines()
        .map(|line| line.split("//").next().unwrap_or_default());
    lines.collect::<Vec<&str>>().join("\n")
}

/// Every path after a prefix, such as `provider::table` for `crate::provider::table::find`; braces are spread out.
fn paths_after(code: &str, prefix: &str) -> Vec<String> {
    code.match_indices(prefix)
        .filter(|(at, _)| !code[..*at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':'))
        .flat_map(|(at, _)| spread(&code[at + prefix.len()..]))
        .collect()
}

fn spread(rest: &str) -> Vec<String> {
    let Some(inside) = rest.strip_prefix('{') else {
        let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':'));
        return vec![rest[..end.unwrap_or(rest.len())].to_owned()];
    };
    let mut depth = 0;
    let mut items = vec![String::new()];
    for c in inside.chars() {
        match c {
            '}' if depth == 0 => break,
            ',' if depth == 0 => items.push(String::new()),
            _ => {
                depth += i32::from(c == '{') - i32::from(c == '}');
                items.last_mut().unwrap().push(c);
            }
        }
    }
    items
        .iter()
        .map(|item| item.trim().to_owned())
        .filter(|item| !item.is_empty())
        .collect()
}

#[test]
fn every_folder_has_its_directions() {
    let mut folders: Vec<String> = fs::read_dir(src())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
        .collect();
    folders.sort();
    let mut named: Vec<&str> = DIRECTIONS.iter().map(|(folder, _)| *folder).collect();
    named.sort_unstable();
    assert_eq!(folders, named);
}

#[test]
fn modules_use_only_what_is_below_them() {
    let mut forbidden = Vec::new();
    for (folder, allowed) in DIRECTIONS {
        for path in sources(&src().join(folder)) {
            for used in paths_after(&code(&path), "crate::") {
                let is_below = |module: &str| {
                    used.strip_prefix(module)
                        .is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
                };
                if !is_below(folder)
                    && !FOR_ALL.iter().any(|file| is_below(file))
                    && !allowed.iter().any(|module| is_below(module))
                {
                    forbidden.push(format!("{}: crate::{used}", path.display()));
                }
            }
        }
    }
    assert_eq!(forbidden, Vec::<String>::new());
}

#[test]
fn only_the_edge_touches_the_platform() {
    let mut forbidden = Vec::new();
    for path in sources(&src()) {
        if path.starts_with(src().join("edge")) || path == src().join(OF_PLATFORM).with_extension("rs") {
            continue;
        }
        let code = code(&path);
        for name in PLATFORM {
            for prefix in [format!("{name}::"), format!("use {name}")] {
                if !paths_after(&code, &prefix).is_empty() {
                    forbidden.push(format!("{}: {name}", path.display()));
                }
            }
        }
    }
    assert_eq!(forbidden, Vec::<String>::new());
}

/// The codec a file of `provider` belongs to: the file or folder directly inside `provider`.
fn codec_of(path: &Path) -> Option<String> {
    let first = path
        .strip_prefix(src().join("provider"))
        .unwrap()
        .components()
        .next()?;
    let name = first.as_os_str().to_string_lossy();
    let name = name.trim_end_matches(".rs").trim_end_matches("_tests").to_owned();
    (name != "mod" && !SHARED_BY_CODECS.contains(&name.as_str())).then_some(name)
}

#[test]
fn codecs_do_not_know_each_other() {
    let files: Vec<(PathBuf, String)> = sources(&src().join("provider"))
        .into_iter()
        .filter_map(|path| codec_of(&path).map(|codec| (path, codec)))
        .collect();
    let codecs: BTreeSet<&str> = files.iter().map(|(_, codec)| codec.as_str()).collect();
    assert!(codecs.contains("demo") && codecs.contains("openai_chat"));
    let mut forbidden = Vec::new();
    for (path, own) in &files {
        let code = code(path);
        for prefix in ["super::", "super::super::", "crate::provider::"] {
            for used in paths_after(&code, prefix) {
                let module = used.split("::").next().unwrap_or_default();
                if module != own && codecs.contains(module) {
                    forbidden.push(format!("{}: {prefix}{used}", path.display()));
                }
            }
        }
    }
    assert_eq!(forbidden, Vec::<String>::new());
}

#[test]
fn a_forbidden_use_would_be_found() {
    let code = "use crate::{\n    api::route::Route,\n    run::{self, ports::Clock},\n};\nlet x = crate::edge::go(); notcrate::api";
    assert_eq!(
        paths_after(code, "crate::"),
        ["api::route::Route", "run::{self, ports::Clock}", "edge::go"]
    );
}
