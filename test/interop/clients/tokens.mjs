// Counts the tokens of texts as models do. Reads a JSON object of texts from stdin and prints one of numbers.
import { readFileSync } from "node:fs";
import { getEncoding } from "js-tiktoken";

const encoding = getEncoding("o200k_base");
const texts = JSON.parse(readFileSync(0, "utf8"));
console.log(JSON.stringify(Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, encoding.encode(text).length]))));
