// What is known against the packages this project uses: licences and sources of what is linked into the Worker (by
// cargo-deny, where it is installed; a fault fails), and advisories of npm (where its registry answers; only told, for
// a new advisory must not stop an unrelated change).

import { output, root, run, which } from "./tools.mjs";

if (which("cargo-deny")) {
  run("cargo", ["deny", "--manifest-path", `${root}/Cargo.toml`, "check", "licenses", "bans", "sources"]);
} else {
  console.log("crates are not checked: `cargo install cargo-deny` puts the checker here.");
}

const report = output("npm", ["audit", "--json", "--audit-level=none"]);
const counts = report && JSON.parse(report).metadata?.vulnerabilities;
if (!counts) {
  console.log("npm packages are not checked: their registry gives no advisories.");
} else {
  const found = Object.entries(counts).filter(([, count]) => count > 0);
  console.log(`npm advisories: ${found.map(([grade, count]) => `${count} ${grade}`).join(", ") || "none"}`);
}
