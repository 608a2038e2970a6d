//! The documentation names only what there is: files, what is in them, agents that the build takes.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

#[path = "../build.rs"]
#[expect(dead_code, reason = "only its reading of agents.toml is used")]
mod build_script;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Every page with its path.
fn pages() -> Vec<(PathBuf, String)> {
    let docs = fs::read_dir(root().join("docs")).unwrap();
    let docs = docs.map(|entry| entry.unwrap().path());
    let mut paths: Vec<PathBuf> = docs
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .collect();
    paths.extend(["README.md", "CONTRIBUTING.md", "CHANGELOG.md"].map(|name| root().join(name)));
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).unwrap();
        (path, text)
    };
    paths.into_iter().map(read).collect()
}

#[test]
fn every_link_leads_to_a_file() {
    for (page, text) in pages() {
        for link in text.split("](").skip(1) {
            let target = link.split([')', '#']).next().unwrap();
            if target.is_empty() || target.contains("://") {
                continue;
            }
            let file = page.parent().unwrap().join(target);
            assert!(file.exists(), "{}: {target}", page.display());
        }
    }
}

/// Texts between backquotes, outside of blocks.
fn quoted(text: &str) -> Vec<String> {
    let outside = text.split("```").step_by(2);
    outside
        .flat_map(|text| {
            text.split('`')
                .skip(1)
                .step_by(2)
                .map(str::to_owned)
                .collect::<Vec<_>>()
        })
        .collect()
}

#[test]
fn every_source_named_is_there_and_has_what_is_named_in_it() {
    let mut named = 0;
    for (page, text) in pages() {
        for quote in quoted(&text) {
            let (path, name) = quote.split_once(": ").unwrap_or((&quote, ""));
            if path.contains([' ', '<', '*'])
                || !path.contains('/')
                || Path::new(path)
                    .extension()
                    .is_none_or(|it| it != "rs" && it != "mjs")
            {
                continue;
            }
            let places = [root().join(path), root().join("src").join(path)];
            let file = places.iter().find(|place| place.exists());
            let file = file.unwrap_or_else(|| panic!("{}: no {path}", page.display()));
            assert!(
                fs::read_to_string(file).unwrap().contains(name),
                "{}: {path} has no {name}",
                page.display()
            );
            named += 1;
        }
    }
    assert!(named > 40, "only {named} sources are named");
}

/// What of `agents.toml` a page shows, made whole: it may show tools without an agent, or an agent with them.
fn whole(block: &str) -> String {
    if block.contains("[[agents]]") {
        return block.to_owned();
    }
    format!("[[agents]]\nid = \"x\"\nprovider = \"demo\"\n{block}")
}

#[test]
fn every_agent_and_tool_shown_is_one_the_build_takes() {
    let mut read = 0;
    for (page, text) in pages() {
        for block in text.split("```toml\n").skip(1) {
            let block = block.split("```").next().unwrap();
            let is_of_agents = ["[[agents]]", "[tools.", "[mcp."]
                .iter()
                .any(|head| block.contains(head));
            if is_of_agents {
                let result = build_script::read(&whole(block));
                assert!(result.is_ok(), "{}: {:?}\n{block}", page.display(), result.err());
                read += 1;
            }
        }
    }
    assert!(read >= 6, "only {read} are shown");
}

#[test]
fn the_changelog_knows_the_version() {
    let text = fs::read_to_string(root().join("CHANGELOG.md")).unwrap();
    let version = env!("CARGO_PKG_VERSION");
    assert!(text.contains("## Unreleased"));
    assert!(
        version == "0.1.0" || text.contains(&format!("## {version}")),
        "{version} has no entry"
    );
}

/// The names of grave log lines that a source writes.
fn grave_lines(source: &str) -> Vec<String> {
    let after_level = source.split("Level::Error,").skip(1);
    let names = after_level.filter_map(|rest| rest.trim_start().strip_prefix('"')?.split('"').next());
    names.map(str::to_owned).collect()
}

fn sources(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let read = |path: PathBuf| {
        if path.is_dir() {
            sources(&path)
        } else {
            vec![fs::read_to_string(path).unwrap()]
        }
    };
    entries.flat_map(read).collect()
}

#[test]
fn operators_are_told_of_every_grave_log_line() {
    let text = fs::read_to_string(root().join("docs/operate.md")).unwrap();
    let table = text.split("| Event | Means |").nth(1).unwrap();
    let rows = table
        .lines()
        .take_while(|line| line.is_empty() || line.starts_with('|'));
    let cells: Vec<&str> = rows.filter_map(|row| row.split('|').nth(1)).collect();
    let told: BTreeSet<String> = quoted(&cells.join(" ")).into_iter().collect();
    let written: BTreeSet<String> = sources(&root().join("src"))
        .iter()
        .flat_map(|source| grave_lines(source))
        .collect();
    assert_eq!(told, written);
}
