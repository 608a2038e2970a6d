//! The build script's reading of `agents.toml`: mistakes are told with file, line and key.

#[path = "../build.rs"]
#[expect(dead_code, reason = "only `read` is tried here; cargo runs the rest")]
mod build_script;

fn mistakes(text: &str) -> Vec<String> {
    build_script::read(text).err().unwrap_or_default()
}

#[test]
fn a_sound_file_is_read() {
    let file = build_script::read("[[agents]]\nid = 'a'\nprovider = 'demo'\n").unwrap();
    assert_eq!(file.agents.len(), 1);
}

#[test]
fn broken_toml_is_told_by_line() {
    assert_eq!(
        mistakes("[[agents]]\nid = \n"),
        ["agents.toml:2: string values must be quoted, expected literal string"]
    );
}

#[test]
fn mistakes_of_form_are_told_by_line_and_key() {
    let cases = [
        (
            "[[agents]]\nid = 'a'\nprovider = 'demo'\nmaxStep = 1\n",
            "agents.toml:4: agents[0].maxStep: unknown field `maxStep`",
        ),
        (
            "[[agents]]\nid = 'a'\nprovider = 'demo'\nmaxSteps = 'x'\n",
            "agents.toml:4: agents[0].maxSteps: invalid type: string \"x\", expected u32",
        ),
        (
            "[[agents]]\nid = 'a'\nprovider = 'demo'\n\n[[agents]]\nid = 'b'\nprovider = 'opnai'\n",
            "agents.toml:7: agents[1].provider: unknown provider `opnai`",
        ),
        (
            "[[agents]]\nid = 'a'\nprovider = 'demo'\n[agents.modelSettings]\ntopp = 1.0\n",
            "agents.toml:5: agents[0].modelSettings.topp: unknown field `topp`",
        ),
        (
            "[[agents]]\nid = 'a'\n",
            "agents.toml:1: agents[0]: missing field `provider`",
        ),
        (
            "[[agents]]\nid = 'a'\nprovider = 'demo'\npersist = 'allways'\n",
            "agents.toml:4: agents[0].persist: unknown variant `allways`",
        ),
        ("", "agents.toml:1: missing field `agents`"),
        (
            "agents = []\n",
            "agents.toml:1: agents: there must be at least one",
        ),
    ];
    for (text, expected) in cases {
        // The lists of what is known grow with the project.
        let told: Vec<String> = mistakes(text)
            .iter()
            .map(|line| line.split(", expected one of").next().unwrap().to_owned())
            .collect();
        assert_eq!(told, [expected]);
    }
}

#[test]
fn every_mistake_of_meaning_is_told_by_line_and_key() {
    let text = "\
[[agents]]
id = 'a'
provider = 'openai'
tools = ['nope']

[[agents]]
id = 'b'
aliases = ['a']
provider = 'demo'
maxSteps = 0
[agents.modelSettings]
topP = 1.5
";
    let names = crate::build_script::tool_names::NATIVE_TOOL_NAMES.join(", ");
    assert_eq!(
        mistakes(text),
        [
            "agents.toml:1: agents[0].model: is needed by this provider".to_owned(),
            format!(
                "agents.toml:4: agents[0].tools: must name server tools; there are: {names} (it is `nope`)"
            ),
            "agents.toml:8: agents[1].aliases: is already the id or an alias of an agent (it is `a`)"
                .to_owned(),
            "agents.toml:10: agents[1].maxSteps: must be from 1 to 1000 (it is `0`)".to_owned(),
            "agents.toml:12: agents[1].modelSettings.topP: must be from 0 to 1 (it is `1.5`)".to_owned(),
        ]
    );
}
