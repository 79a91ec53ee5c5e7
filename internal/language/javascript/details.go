package javascript

import "github.com/llmsandbox/llmsandbox/internal/language"

var detailsOfTypeScript = language.Details{
	UseCases:       []string{"JSON and text processing", "asynchronous code", "code for Node.js with types, which are not checked"},
	PackageManager: "npm",
	Version:        details.Version,
	Known:          details.Known,
	Present:        details.Present,
	Examples: []language.Example{
		{Title: "Hello", Description: "Types are removed, not checked.", Code: "const name: string = \"TypeScript\";\nconsole.log(`Hello from ${name}!`);\n"},
		{
			Title: "Group records", Description: "Interfaces, generics and enums.",
			Code: `enum Kind { Fruit = "fruit", Root = "root" }

interface Item { kind: Kind; name: string }

function group<T, K extends string>(items: T[], key: (item: T) => K): Record<K, T[]> {
  const groups = {} as Record<K, T[]>;
  for (const item of items) (groups[key(item)] ??= []).push(item);
  return groups;
}

const items: Item[] = [{ kind: Kind.Fruit, name: "fig" }, { kind: Kind.Root, name: "beet" }, { kind: Kind.Fruit, name: "plum" }];
console.log(JSON.stringify(group(items, (item) => item.kind)));
`,
		},
	},
}

var details = language.Details{
	UseCases:       []string{"JSON and text processing", "asynchronous code", "trying out code for the web's servers"},
	PackageManager: "npm",
	Version:        []string{"node", "--version"},
	Known:          []string{"lodash", "axios", "express", "typescript", "d3", "date-fns", "mathjs", "zod"},
	Present: func(names []string) []string {
		const find = "for (const n of process.argv.slice(1)) try { require.resolve(n); console.log(n) } catch {}"
		return append([]string{"node", "-e", find}, names...)
	},
	Examples: []language.Example{
		{Title: "Hello", Description: "Prints a line.", Code: "console.log(\"Hello from JavaScript!\");\n"},
		{
			Title: "Reshape JSON", Description: "Groups records by a key.",
			Code: `const records = [{ k: "a", n: 1 }, { k: "b", n: 2 }, { k: "a", n: 3 }];
const sums = {};
for (const { k, n } of records) sums[k] = (sums[k] ?? 0) + n;
console.log(JSON.stringify(sums));
`,
		},
		{
			Title: "Modules and await", Description: "Code with import is a module, where await may stand at the top.",
			Code: `import { readFile, writeFile } from "node:fs/promises";

await writeFile("note.txt", "kept while the sandbox lives");
console.log(await readFile("note.txt", "utf8"));
`,
		},
	},
}
