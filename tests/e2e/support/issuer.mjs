// An issuer of tokens: its keys, its key address, and tokens good and bad.

import { createHmac, generateKeyPairSync, sign } from "node:crypto";
import { createServer } from "node:http";

export const AUDIENCE = "io-bridge-tests";

const base64url = (value) => Buffer.from(typeof value === "string" ? value : JSON.stringify(value)).toString("base64url");

const KINDS = {
  RS256: { make: () => generateKeyPairSync("rsa", { modulusLength: 2048 }), sign: (data, key) => sign("sha256", data, key) },
  ES256: {
    make: () => generateKeyPairSync("ec", { namedCurve: "P-256" }),
    sign: (data, key) => sign("sha256", data, { key, dsaEncoding: "ieee-p1363" }),
  },
  EdDSA: { make: () => generateKeyPairSync("ed25519"), sign: (data, key) => sign(null, data, key) },
};

/** A signature over bytes; `key` is a private key, or the text of a shared secret for HS256. */
function signature(algorithm, data, key) {
  if (algorithm === "HS256") return createHmac("sha256", key).update(data).digest();
  return KINDS[algorithm].sign(Buffer.from(data), key);
}

/** A token signed with `key` by `algorithm`, whatever its header says. */
export function signed({ header = {}, claims, algorithm, key }) {
  const data = `${base64url({ alg: algorithm, typ: "JWT", ...header })}.${base64url(claims)}`;
  return `${data}.${signature(algorithm, data, key).toString("base64url")}`;
}

/** Starts an issuer with one key per algorithm. */
export async function startIssuer() {
  const issuer = new Issuer();
  await new Promise((resolve) => issuer.server.listen(0, "127.0.0.1", resolve));
  issuer.url = `http://127.0.0.1:${issuer.server.address().port}`;
  return issuer;
}

class Issuer {
  /** How often the key set was asked for. */
  fetchCount = 0;
  /** Whether the key address works. */
  isDown = false;
  keys = [];

  constructor() {
    for (const algorithm of Object.keys(KINDS)) this.addKey(algorithm);
    this.server = createServer((request, response) => {
      this.fetchCount += 1;
      if (this.isDown) return response.writeHead(500).end("private words of the issuer");
      const keys = this.keys.map(({ kid, publicKey }) => ({ ...publicKey.export({ format: "jwk" }), kid, use: "sig" }));
      response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify({ keys }));
    });
  }

  addKey(algorithm, kid = `${algorithm}-1`) {
    const key = { kid, algorithm, ...KINDS[algorithm].make() };
    this.keys.push(key);
    return key;
  }

  /** The table AUTH for tokens of this issuer. */
  auth(more = {}) {
    const keys = more.keySecret ? {} : { jwksUrl: `${this.url}/keys` };
    return { mode: "jwt", issuer: "https://issuer.example/", audience: AUDIENCE, ...keys, ...more };
  }

  claims(more = {}) {
    const nowS = Math.floor(Date.now() / 1000);
    return { iss: "https://issuer.example/", aud: AUDIENCE, sub: "ada", iat: nowS, exp: nowS + 300, ...more };
  }

  /** A good token, but for what `claims` and `header` say. */
  token({ algorithm = "ES256", claims = {}, header = {}, key = this.keys.find((key) => key.algorithm === algorithm) } = {}) {
    return signed({ header: { kid: key.kid, ...header }, claims: this.claims(claims), algorithm, key: key.privateKey });
  }

  async stop() {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }
}
