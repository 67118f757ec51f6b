// Check a certificate without armnesia: node check_certificate.mjs CERTIFICATE PUBLIC_KEY
import { createHash, createPublicKey, verify } from "node:crypto";
import { readFileSync } from "node:fs";

const sha256 = (...parts) => createHash("sha256").update(Buffer.concat(parts)).digest();
const base64 = (text) => Buffer.from(text, "base64");
const hex = (text) => Buffer.from(text, "hex");
const must = (holds, sentence) => { if (!holds) throw new Error(sentence); };

// An Ed25519 signature by the holder of a public key of 64 hexadecimal digits.
function isSigned(data, signature, key) {
  const jwk = { kty: "OKP", crv: "Ed25519", x: hex(key).toString("base64url") };
  return verify(null, data, createPublicKey({ key: jwk, format: "jwk" }), signature);
}

// The root of the Merkle tree (RFC 9162, 2.1.3.2) of this size that has the leaf at this place.
function root(data, index, size, path) {
  let node = sha256(Buffer.from([0]), data), last = size - 1;
  const up = () => { index = Math.floor(index / 2); last = Math.floor(last / 2); };
  for (const beside of path) {
    while (last && index === last && index % 2 === 0) up(); // no neighbour: it is passed on
    node = index % 2 ? sha256(Buffer.from([1]), beside, node) : sha256(Buffer.from([1]), node, beside);
    up();
  }
  must(index === 0 && last === 0, "the path does not lead to the root");
  return node;
}

// The statement of an entry, if its signer and the holder of this key have signed for it.
function checkEntry({ envelope, proof }, key) {
  const payload = base64(envelope.payload), type = Buffer.from(envelope.payloadType);
  const leaf = Buffer.concat([Buffer.from(`DSSEv1 ${type.length} `), type, Buffer.from(` ${payload.length} `), payload]);
  const statement = JSON.parse(payload), { signer, vault, number } = statement.predicate;
  must(isSigned(leaf, base64(envelope.signatures[0].sig), signer), "the entry is not signed by its signer");
  const parts = proof.split("\n\n"), [, place, ...path] = parts[0].split("\n");
  const text = `${parts[1]}\n`, [origin, size, signed] = text.split("\n");
  must(isSigned(Buffer.from(text), base64(parts[2].trim().split(" ")[2]).subarray(4), key), "another key");
  const index = Number(place.replace("index ", ""));
  const found = root(leaf, index, Number(size), path.map(base64));
  must(found.equals(base64(signed)), "the entry is not in the ledger of the checkpoint");
  must(origin === `armnesia/${vault}` && index === number - 1, "the entry is of another place or vault");
  return statement;
}

process.on("uncaughtException", (error) => (console.error(`not valid: ${error.message}`), process.exit(1)));
const [file, key] = process.argv.slice(2), certificate = JSON.parse(readFileSync(file, "utf-8"));
const { subject, predicate } = checkEntry(certificate, key), people = hex(subject[0].digest.sha256);
must(predicate.kind === "forget", "it is no deletion");
for (const { role, outcome, text, salt, index, path } of certificate.opening) {
  const data = Buffer.concat([hex(salt), Buffer.from(`${role}\n${outcome}\n${text}`)]);
  const found = root(data, index, 2 ** path.length, path.map(hex));
  must(salt.length === 32 && found.equals(people), `the ${role} is not of this entry`);
  console.log(`${role} ${text}: ${outcome}`);
}
for (const later of certificate.later) console.log(checkEntry(later, key).predicate.kind);
console.log("valid");
