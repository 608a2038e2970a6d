// Markdown that may still be growing. Blocks that are complete are not touched again: a selection in them stays.

import DOMPurify from "dompurify";
import { Marked, type Token, type TokensList } from "marked";
import { memo } from "./memo.ts";

const marked = new Marked({ gfm: true, breaks: false });

DOMPurify.addHook("afterSanitizeAttributes", (node) => {
  if (node.tagName !== "A") return;
  node.setAttribute("target", "_blank");
  node.setAttribute("rel", "noopener noreferrer");
});

// A model's words must not load anything: no images, no styles, no forms.
const rules = { FORBID_TAGS: ["img", "picture", "video", "audio", "iframe", "style", "form", "input", "button"], FORBID_ATTR: ["style", "class", "id"] };

const Block = memo(({ token, links }: { token: Token; links: TokensList["links"] }) => {
  const list = Object.assign([token], { links }) as TokensList;
  const html = DOMPurify.sanitize(marked.parser(list), { ...rules, RETURN_TRUSTED_TYPE: true });
  const isWide = token.type === "code" || token.type === "table";
  return (
    <div
      class={`block block-${token.type}`}
      {...(isWide ? { tabIndex: 0, role: "region", "aria-label": token.type === "code" ? "Code" : "Table" } : {})}
      dangerouslySetInnerHTML={{ __html: html as unknown as string }}
    />
  );
}, (before, now) => before.token.raw === now.token.raw);

export function Markdown({ text }: { text: string }) {
  const tokens = marked.lexer(text);
  return (
    <div class="markdown">
      {tokens
        .filter(({ type }) => type !== "space")
        .map((token, index) => (
          <Block key={index} token={token} links={tokens.links} />
        ))}
    </div>
  );
}
