//! Checks `agents.toml` and embeds it as JSON: a mistake stops the build with file, line and key. Embeds the API's
//! description without its blanks.

use std::path::Path;
use std::process::ExitCode;
use std::{env, fs};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

#[path = "src/config/agents.rs"]
mod agents;
#[path = "src/config/check.rs"]
mod check;
#[path = "src/config/check_tools.rs"]
mod check_tools;
#[path = "src/protocol/named.rs"]
mod named;
#[path = "src/config/server_tools.rs"]
mod server_tools;
#[path = "src/provider/table.rs"]
mod table;
#[path = "src/tool/names.rs"]
pub mod tool_names;
#[path = "src/tool/template.rs"]
mod tool_template;

use agents::AgentsFile;
use check::Place;

const FILE: &str = "agents.toml";

/// The API's description as people write it.
const DESCRIPTION_FILE: &str = "src/api/openapi.json";

fn main() -> ExitCode {
    println!("cargo::rerun-if-changed={FILE}");
    println!("cargo::rerun-if-changed={DESCRIPTION_FILE}");
    match embed().and_then(|()| embed_description()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(mistakes) => {
            for mistake in mistakes {
                println!("cargo::error={mistake}");
            }
            ExitCode::FAILURE
        }
    }
}

fn embed() -> Result<(), Vec<String>> {
    let text = fs::read_to_string(FILE).map_err(|error| vec![format!("{FILE}: {error}")])?;
    read(&text)?;
    // As it is written: the Worker knows the defaults.
    let json: serde_json::Value = toml::from_str(&text).map_err(|error| vec![error.to_string()])?;
    let json = json.to_string();
    let folder = env::var("OUT_DIR").map_err(|error| vec![error.to_string()])?;
    fs::write(Path::new(&folder).join("agents.json"), json).map_err(|error| vec![error.to_string()])
}

fn embed_description() -> Result<(), Vec<String>> {
    let place = |error: &dyn std::fmt::Display| vec![format!("{DESCRIPTION_FILE}: {error}")];
    let text = fs::read_to_string(DESCRIPTION_FILE).map_err(|error| place(&error))?;
    let description: serde_json::Value = serde_json::from_str(&text).map_err(|error| place(&error))?;
    let folder = env::var("OUT_DIR").map_err(|error| place(&error))?;
    let file = Path::new(&folder).join("openapi.json");
    fs::write(file, description.to_string()).map_err(|error| place(&error))
}

/// Decodes and checks the file's text; every mistake as `agents.toml:LINE: KEY: what is wrong`.
pub fn read(text: &str) -> Result<AgentsFile, Vec<String>> {
    let decode_fault = |error: toml::de::Error| {
        let at = error.span().map_or(0, |span| span.start);
        vec![mistake(text, at, &key_at(text, at), error.message())]
    };
    let document = DeTable::parse(text).map_err(decode_fault)?;
    let file: AgentsFile = toml::from_str(text).map_err(decode_fault)?;
    if file.agents.is_empty() {
        return Err(vec![mistake(text, 0, "agents", "there must be at least one")]);
    }
    let faults = check::check(&file);
    if faults.is_empty() {
        return Ok(file);
    }
    let lines = faults.iter().map(|fault| {
        let (key, at) = locate(document.get_ref(), &fault.place, fault.key);
        let told = match fault.value.as_str() {
            "" => fault.message.clone(),
            value => format!("{} (it is `{value}`)", fault.message),
        };
        mistake(text, at, &key, &told)
    });
    Err(lines.collect())
}

fn mistake(text: &str, at: usize, key: &str, what: &str) -> String {
    let line = text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1;
    let key = if key.is_empty() {
        String::new()
    } else {
        format!("{key}: ")
    };
    format!("{FILE}:{line}: {key}{}", what.replace('\n', " "))
}

/// Path and position of a key; of the deepest table there is, when the key is absent.
fn locate(document: &DeTable<'_>, place: &Place, key: &str) -> (String, usize) {
    let named = |table: &str, name: &str| {
        let value = document
            .get(table)
            .and_then(|table| table.get_ref().as_table()?.get(name));
        (format!("{table}.{name}"), value)
    };
    let (mut path, element) = match place {
        Place::Agent(index) => {
            let agents = document.get("agents");
            let element = agents.and_then(|agents| agents.get_ref().get(*index));
            (format!("agents[{index}]"), element)
        }
        Place::Tool(name) => named("tools", name),
        Place::Mcp(name) => named("mcp", name),
    };
    if !key.is_empty() {
        path = format!("{path}.{key}");
    }
    let Some(mut value) = element else {
        return (path, 0);
    };
    let mut at = value.span().start;
    for part in key.split('.') {
        let Some(table) = value.get_ref().as_table() else {
            break;
        };
        let Some((name, inner)) = table.get_key_value(part) else {
            break;
        };
        at = name.span().start;
        value = inner;
    }
    (path, at)
}

/// The path of the key that a byte of the text belongs to; empty when there is none.
fn key_at(text: &str, at: usize) -> String {
    let mut path = String::new();
    if let Ok(document) = DeTable::parse(text) {
        descend(document.get_ref(), at, &mut path);
    }
    path
}

fn descend(table: &DeTable<'_>, at: usize, path: &mut String) {
    // Spans of tables under several headers may not nest: the last entry that starts before the byte is its owner.
    let entry = table
        .iter()
        .rfind(|(name, value)| name.span().contains(&at) || contains(value, at));
    let Some((name, value)) = entry else { return };
    if !path.is_empty() {
        path.push('.');
    }
    path.push_str(name.get_ref());
    match value.get_ref() {
        DeValue::Table(inner) => descend(inner, at, path),
        DeValue::Array(items) => {
            if let Some((index, item)) = items.iter().enumerate().find(|(_, item)| contains(item, at)) {
                *path = format!("{path}[{index}]");
                if let DeValue::Table(inner) = item.get_ref() {
                    descend(inner, at, path);
                }
            }
        }
        DeValue::String(_)
        | DeValue::Integer(_)
        | DeValue::Float(_)
        | DeValue::Boolean(_)
        | DeValue::Datetime(_) => {}
    }
}

/// Whether a value, or anything inside it, spans a byte.
fn contains(value: &Spanned<DeValue<'_>>, at: usize) -> bool {
    value.span().contains(&at)
        || match value.get_ref() {
            DeValue::Table(inner) => inner
                .iter()
                .any(|(name, value)| name.span().contains(&at) || contains(value, at)),
            DeValue::Array(items) => items.iter().any(|item| contains(item, at)),
            DeValue::String(_)
            | DeValue::Integer(_)
            | DeValue::Float(_)
            | DeValue::Boolean(_)
            | DeValue::Datetime(_) => false,
        }
}
