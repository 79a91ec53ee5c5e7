package javascript

import "testing"

func TestUsesModules(t *testing.T) {
	for code, want := range map[string]bool{
		"import fs from 'fs'": true, "import 'x'": true, "import{a} from 'b'": true, "export default 1": true, "export {a}": true,
		"// c\nimport * as x from 'y'": true, "#!/usr/bin/env node\nimport x from 'y'": true, "const r = /[`'\"]/;\nimport x from 'y'": true,
		"const x = await import('y')": false, "import('x')": false, "import.meta.url": false, "// import x from 'y'": false,
		"/*\nimport x from 'y'\n*/": false, "`\nimport x from 'y'\n`": false, "const exports = 1": false, "module.exports = {}": false,
		"exports.a = 1": false, "'use strict'; const a = 4 / 2; b = a / 2\nexport const c = 1": true, "": false,
	} {
		if got := usesModules([]byte(code)); got != want {
			t.Errorf("%q: %v, want %v", code, got, want)
		}
	}
}

func FuzzUsesModules(f *testing.F) {
	f.Add([]byte("import x from 'y'"))
	f.Add([]byte("`\\"))
	f.Fuzz(func(_ *testing.T, code []byte) { usesModules(code) })
}
