# Every target is complete in itself: it sets up what is missing, and takes a moment where nothing is.

PORT ?= 8787
WHERE ?= --remote
SECONDS ?= 600
SEED ?= 1

export PATH := $(CURDIR)/node_modules/.bin:$(HOME)/.cargo/bin:$(PATH)
export WRANGLER_SEND_METRICS := false

.PHONY: dev test test-matrix test-proxy test-mastra test-openapi test-playground test-guides test-examples build size size-profile instructions bench deploy reindex try-provider setup fuzz fuzz-coverage

## The server on this machine, at http://localhost:$(PORT)
dev: build
	node scripts/migrate.mjs --local
	wrangler dev --port $(PORT)

## Everything that can be checked, cheapest first
test: setup
	cargo fmt --check
	cargo clippy --all-targets -- -D warnings
	cargo clippy --lib --target wasm32-unknown-unknown -- -D warnings
	cargo clippy --lib --target wasm32-unknown-unknown --features test-commands -- -D warnings
	cargo test
	node scripts/instructions.mjs
	RUSTDOCFLAGS="-D warnings" cargo doc --no-deps --document-private-items
	node scripts/dependencies.mjs
	node scripts/audit.mjs
	node scripts/build.mjs
	node scripts/build.mjs --test-commands
	node scripts/size.mjs
	node scripts/matrix.mjs
	npm run e2e
	node scripts/guides.mjs

## Every client version there is, over every transport
test-matrix: build
	node scripts/matrix.mjs --all

## The Worker behind nginx: with its default settings, over HTTP/2, and with a tool slower than its time-out
test-proxy: build
	node scripts/proxy.mjs

## The Worker in front of a real Mastra server, whose packages are large
test-mastra: build
	node scripts/mastra.mjs

## The API's description linted, and the Worker asked what it promises
test-openapi: build
	node scripts/openapi.mjs

## The examples' pages in a real Chromium; CopilotKit's packages are large
test-examples: build
	node scripts/examples.mjs

## The commands of the guides, from an empty folder
test-guides: build
	node scripts/guides.mjs

## The playground in a real Chromium, and its types
test-playground: build
	node scripts/test_playground.mjs

## A vendor with your key in .dev.vars: `make try-provider PROVIDER=openai MODEL=gpt-5-mini`, BASE_URL=... for another server
try-provider: build
	@PROVIDER=$(PROVIDER) MODEL=$(MODEL) BASE_URL=$(BASE_URL) node scripts/try-provider.mjs

## build/index.js and build/index_bg.wasm, and the playground in dist/
build: setup
	node scripts/build.mjs

## Changed input against every reader of it, for SECONDS
fuzz: setup
	FUZZ_SECONDS=$(SECONDS) FUZZ_SEED=$(SEED) cargo test --release --test fuzz -- --nocapture

## The same readers searched by what inputs reach, for SECONDS; `WRITE=--write` keeps what is new for `cargo test`. Needs
## cargo-fuzz (`cargo install cargo-fuzz --locked`) and a C++ compiler
fuzz-coverage:
	node scripts/fuzz.mjs --seconds $(SECONDS) $(WRITE)

## What the Worker weighs
size: build
	node scripts/size.mjs

## What the Worker is made of, into docs/size.md
size-profile: build
	node scripts/size.mjs --profile

## Instructions of the core for fixed inputs against bench/instructions/baseline.json; `WRITE=--write` writes that anew
instructions: setup
	node scripts/instructions.mjs $(WRITE)

## Every measure beside the peers, into docs/benchmarks.* and docs/cost.md: 18 minutes of a quiet machine. A part of it:
## `OPTIONS="--only flood,first-text --quick"`, which prints
bench: build
	node bench/run.mjs $(OPTIONS)

## Remote migrations, then the Worker; needs a Cloudflare account. Refuses a Worker that everybody may call
deploy: setup
	node scripts/guard.mjs
	node scripts/build.mjs
	node scripts/migrate.mjs --remote
	wrangler deploy

## The search index anew from the main database; `make reindex WHERE=--local` on this machine
reindex: setup
	node scripts/reindex.mjs $(WHERE)

setup:
	@node scripts/setup.mjs
