package e2b

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/llmsandbox/llmsandbox"
)

// execute runs code and returns the lines of the answer, and whether it is whole.
func (b *box) execute(ctx context.Context, body string) (list []map[string]any, whole bool) {
	b.t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, b.url+"/execute", strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	res, err := b.client("49999").Do(r)
	if err != nil {
		b.t.Error(err)
		return nil, false
	}
	defer res.Body.Close() //nolint:errcheck // it was read
	if res.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(res.Body)
		b.t.Errorf("%s: status %d, %s", body, res.StatusCode, text)
		return nil, false
	}
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var one map[string]any
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil || strings.Trim(lines.Text(), ascii128) != "" {
			b.t.Errorf("%s: a line is %q (%v), want JSON of ASCII", body, lines.Text(), err)
		}
		if one["type"] != "keepalive" {
			list = append(list, one)
		}
	}
	return list, lines.Err() == nil && len(list) > 0 && list[len(list)-1]["type"] == "end_of_execution"
}

var ascii128 = func() string {
	var all []byte
	for c := byte(1); c < 0x80; c++ {
		all = append(all, c)
	}
	return string(all)
}()

// code is a body that asks to run code.
func code(code string, more map[string]any) string {
	in := map[string]any{"code": code, "context_id": nil, "language": nil, "env_vars": nil} // as the SDK sends them
	maps.Copy(in, more)
	text, _ := json.Marshal(in)
	return string(text)
}

// short is what lines say, without times and tracebacks.
func short(list []map[string]any) []string {
	out := []string{}
	for _, l := range list {
		delete(l, "timestamp")
		delete(l, "traceback")
		kind := l["type"].(string)
		delete(l, "type")
		text, _ := json.Marshal(l)
		out = append(out, kind+" "+string(text))
	}
	return out
}

func (b *box) wants(body string, want ...string) {
	b.t.Helper()
	list, whole := b.execute(testContext(b.t), body)
	if got := short(list); !whole || !slices.Equal(got, append(want, "end_of_execution {}")) {
		b.t.Errorf("%s:\ngot  %q (whole: %v)\nwant %q", body, got, whole, want)
	}
}

// TestExecute: state is kept, and everything that becomes of code has its lines.
func TestExecute(t *testing.T) {
	b := serve(t).open(llmsandbox.Options{Language: "python", Env: map[string]string{"ALL": "of it"}})
	number := func(n int) string { return fmt.Sprintf(`number_of_executions {"execution_count":%d}`, n) }
	b.wants(code("x = 40\nprint('a')\nprint('é😀', end='')", nil), number(1), `stdout {"text":"a\n"}`, `stdout {"text":"é😀"}`)
	b.wants(code("import sys; print('e', file=sys.stderr); x + 2", nil), number(2), `stderr {"text":"e\n"}`, `result {"is_main_result":true,"text":"42"}`)
	b.wants(code("exec('1 +')", map[string]any{"language": "Python"}), number(3), `error {"name":"SyntaxError","value":"invalid syntax (\u003cstring\u003e, line 1)"}`)
	b.wants(code("'quoted'", nil), number(4), `result {"is_main_result":true,"text":"quoted"}`)
	b.wants(code("input()", nil), number(5), `error {"name":"EOFError","value":"EOF when reading a line"}`)
	env := `import os; repr([os.environ.get(n) for n in ("ALL", "ONE", "TWO")])`
	b.wants(code(env, map[string]any{"env_vars": map[string]string{"ALL": "new", "ONE": "it's \"1\" é😀\n"}}), number(6), `result {"is_main_result":true,"text":"[\\'new\\', \\'it\\\\\\'s \"1\" é😀\\\\n\\', None]"}`)
	b.wants(code(env, nil), number(7), `result {"is_main_result":true,"text":"['of it', None, None]"}`)
	b.wants(code("os.kill(os.getpid(), 9)", nil), number(8), `error {"name":"ContextRestarting","value":"the kernel's process ended (SIGKILL)"}`)
	b.wants(code("x", nil), number(1), `error {"name":"NameError","value":"name 'x' is not defined"}`)
	b.wants(code("class J:\n def _repr_json_(self): return {'a': 0.0}\nJ.__repr__ = lambda s: 'J'\nJ()", nil), number(2), `result {"is_main_result":true,"json":{"a":0},"text":"J"}`)
	b.wants(code("echo $ONE; ONE=x; false", map[string]any{"language": "bash", "env_vars": map[string]string{"ONE": "it's $1"}}), number(1), `stdout {"text":"it's $1\n"}`, `error {"name":"exit code","value":"1"}`)
	b.wants(code("echo -$ONE-", map[string]any{"language": "bash"}), number(2), `stdout {"text":"--\n"}`)
	for body, want := range map[string]int{
		code("1", map[string]any{"context_id": "x"}):                          http.StatusNotFound,
		code("1", map[string]any{"context_id": "x", "language": "python"}):    http.StatusBadRequest,
		code("1", map[string]any{"language": "cobol"}):                        http.StatusInternalServerError,
		code("1", map[string]any{"env_vars": map[string]string{"A=B": ""}}):   http.StatusBadRequest,
		code("1", map[string]any{"env_vars": map[string]string{"A": "\x00"}}): http.StatusBadRequest,
		`{"code": 1}`: http.StatusBadRequest, "": http.StatusBadRequest,
		code(strings.Repeat("#", maxCode), nil): http.StatusRequestEntityTooLarge,
	} {
		if status, text := b.do("49999", http.MethodPost, "/execute", "application/json", body); status != want {
			t.Errorf("%.100s: status %d, %s; want %d", body, status, text, want)
		}
	}
}

// TestVariablesOfAnExecution: they are there for it, and those before are afterwards.
func TestVariablesOfAnExecution(t *testing.T) {
	b := serve(t).open(llmsandbox.Options{})
	value := `it's $1 "2" \ é😀`
	for language, show := range map[string]struct{ code, set, before string }{
		"javascript": {"console.log(process.env.A)", "process.env.A = 'before'", ""},
		"typescript": {"console.log(process.env.A)", "process.env.A = 'before'", ""},
		"bash":       {`printf '%s\n' "$A"`, "A=before", ""},
		"r":          {`cat(Sys.getenv("A"), "\n", sep = "")`, `Sys.setenv(A = "before"); invisible()`, ""},
		"java":       {`System.out.println(System.getProperty("A"));`, `System.setProperty("A", "before");`, ""},
	} {
		t.Run(language, func(t *testing.T) {
			output := func(text string, vars map[string]string) string {
				list, whole := b.execute(testContext(t), code(text, map[string]any{"language": language, "env_vars": vars}))
				var out strings.Builder
				for _, l := range list {
					if l["type"] == "stdout" {
						out.WriteString(l["text"].(string))
					}
				}
				if !whole || slices.ContainsFunc(list, func(l map[string]any) bool { return l["type"] == "error" }) {
					t.Errorf("%s: %v", text, list)
				}
				return out.String()
			}
			for _, set := range []string{"", show.set} {
				before := output(show.code, nil)
				if set != "" {
					output(set, nil)
					before = "before\n"
				}
				if got := output(show.code, map[string]string{"A": value, "B": ""}); got != value+"\n" {
					t.Errorf("with the variable: %q, want %q", got, value)
				}
				if got := output(show.code, nil); got != before {
					t.Errorf("afterwards: %q, want %q", got, before)
				}
			}
		})
	}
}

type contextInfo struct{ ID, Language, Cwd string }

// TestContexts: they are there before their kernels, and are apart from each other.
func TestContexts(t *testing.T) {
	b := serve(t).open(llmsandbox.Options{Language: "python"})
	list := func() (list []contextInfo) {
		t.Helper()
		if _, text := b.do("49999", http.MethodGet, "/contexts", "", ""); json.Unmarshal([]byte(text), &list) != nil {
			t.Fatal(text)
		}
		return list
	}
	all := list()
	if len(all) != 2 || all[0].Language != "python" || all[0].Cwd != "/home/user" || all[1].Language != "javascript" {
		t.Fatalf("there are %+v, want one for Python and one for JavaScript", all)
	}
	var made contextInfo
	status, text := b.do("49999", http.MethodPost, "/contexts", "application/json", `{"language": "py", "cwd": "/tmp"}`)
	if err := json.Unmarshal([]byte(text), &made); err != nil || status != http.StatusOK || made.Language != "python" || made.Cwd != "/tmp" {
		t.Fatalf("status %d, %s", status, text)
	}
	in := func(c contextInfo) map[string]any { return map[string]any{"context_id": c.ID} }
	b.wants(code("import os; x = 1; os.getcwd()", in(made)), `number_of_executions {"execution_count":1}`, `result {"is_main_result":true,"text":"/tmp"}`)
	b.wants(code("import os; os.getcwd()", in(all[0])), `number_of_executions {"execution_count":1}`, `result {"is_main_result":true,"text":"/home/user"}`)
	b.wants(code("x", nil), `number_of_executions {"execution_count":2}`, `error {"name":"NameError","value":"name 'x' is not defined"}`)
	if now := list(); len(now) != 3 || now[0].ID != all[0].ID || now[2].ID != made.ID {
		t.Errorf("there are %+v, want the new one behind the others", now)
	}
	one := "/contexts/" + made.ID
	for _, step := range []struct {
		method, path string
		status       int
	}{
		{http.MethodPost, one + "/restart", http.StatusOK}, {http.MethodPost, "/contexts/" + all[1].ID + "/restart", http.StatusOK},
		{http.MethodPost, "/contexts/x/restart", http.StatusNotFound}, {http.MethodDelete, "/contexts/x", http.StatusNotFound},
	} {
		status, text := b.do("49999", step.method, step.path, "application/json", "")
		if status != step.status || status == http.StatusOK && text != "null" {
			t.Errorf("%s %s: status %d, %s, want %d", step.method, step.path, status, text, step.status)
		}
	}
	b.wants(code("x", in(made)), `number_of_executions {"execution_count":1}`, `error {"name":"NameError","value":"name 'x' is not defined"}`)
	if status, text := b.do("49999", http.MethodDelete, one, "", ""); status != http.StatusOK || len(list()) != 2 {
		t.Errorf("status %d, %s; want that it is gone", status, text)
	}
	if found, err := b.sandbox.Kernels(testContext(t)); err != nil || len(found) != 1 {
		t.Errorf("there are kernels %v (%v), want one", found, err)
	}
	if status, text := b.do("49999", http.MethodPost, "/contexts", "application/json", `{"language": "cobol"}`); status != http.StatusInternalServerError || !strings.Contains(text, "cobol") {
		t.Errorf("status %d, %s", status, text)
	}
	for range maxContexts {
		status, text = b.do("49999", http.MethodPost, "/contexts", "application/json", `{}`)
	}
	if status != http.StatusTooManyRequests || len(list()) != maxContexts {
		t.Errorf("status %d, %s; want that there may be no more", status, text)
	}
}

// TestInterpreterWithoutToken: code needs the token, and a wrong one is worse than none.
func TestInterpreterWithoutToken(t *testing.T) {
	b := serve(t).open(llmsandbox.Options{})
	for _, test := range []struct {
		method, path, token string
		status              int
	}{
		{http.MethodGet, "/health", "", http.StatusOK}, {http.MethodGet, "/contexts", "", http.StatusOK}, {http.MethodGet, "/contexts", "x", http.StatusUnauthorized},
		{http.MethodPost, "/execute", "", http.StatusUnauthorized}, {http.MethodPost, "/execute", "x", http.StatusUnauthorized},
	} {
		r, err := http.NewRequestWithContext(testContext(t), test.method, b.url+test.path, strings.NewReader(`{"code": "1"}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set(sandboxHeader, outerID(b.sandbox.ID()))
		r.Header.Set(portHeader, "49999")
		if test.token != "" {
			r.Header.Set(tokenHeader, test.token)
		}
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := res.Body.Close(); err != nil || res.StatusCode != test.status {
			t.Errorf("%s %s with %q: status %d, want %d", test.method, test.path, test.token, res.StatusCode, test.status)
		}
	}
}

// TestExecutionsQueue: those of a context run one after the other, each with its own variables.
func TestExecutionsQueue(t *testing.T) {
	b := serve(t).open(llmsandbox.Options{Language: "python"})
	var group sync.WaitGroup
	for i := range 5 {
		group.Go(func() {
			want := fmt.Sprint(i)
			list, whole := b.execute(testContext(t), code("import os; os.environ['I']", map[string]any{"env_vars": map[string]string{"I": want}}))
			if !whole || len(list) != 3 || list[1]["text"] != want {
				t.Errorf("%v, want %s", list, want)
			}
		})
	}
	group.Wait()
}

// TestClientGoes: code whose client goes is interrupted, and what was before is kept.
func TestClientGoes(t *testing.T) {
	b := serve(t).open(llmsandbox.Options{Language: "python"})
	b.wants(code("x = 1", nil), `number_of_executions {"execution_count":1}`)
	ctx, cancel := context.WithCancel(testContext(t))
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, b.url+"/execute", strings.NewReader(code("x = 2; print('runs', flush=True)\nwhile True: pass", nil)))
	if err != nil {
		t.Fatal(err)
	}
	res, err := b.client("49999").Do(r)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() && !strings.Contains(lines.Text(), "runs") {
	}
	cancel()
	if err := res.Body.Close(); err != nil {
		t.Fatal(err)
	}
	b.wants(code("x", nil), `number_of_executions {"execution_count":3}`, `result {"is_main_result":true,"text":"2"}`)
}

// TestSandboxEndsUnderCode: the answer is not whole.
func TestSandboxEndsUnderCode(t *testing.T) {
	b := serve(t).open(llmsandbox.Options{Language: "python"})
	res := func() *http.Response {
		r, err := http.NewRequestWithContext(testContext(t), http.MethodPost, b.url+"/execute", strings.NewReader(code("print('runs', flush=True)\nwhile True: pass", nil)))
		if err != nil {
			t.Fatal(err)
		}
		res, err := b.client("49999").Do(r)
		if err != nil {
			t.Fatal(err)
		}
		return res
	}()
	defer res.Body.Close() //nolint:errcheck // it was read
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() && !strings.Contains(lines.Text(), "runs") {
	}
	if err := b.sandbox.Close(); err != nil {
		t.Fatal(err)
	}
	rest := ""
	for lines.Scan() {
		rest += lines.Text()
	}
	if lines.Err() == nil || strings.Contains(rest, "end_of_execution") {
		t.Errorf("error %v after %q, want that the connection was cut", lines.Err(), rest)
	}
}

// TestData: lists, dictionaries and data frames come as data, where IPython shows them.
func TestData(t *testing.T) {
	b := serve(t).open(llmsandbox.Options{Language: "python"})
	k, err := b.sandbox.Kernel(testContext(t), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close() //nolint:errcheck // it does not fail
	cell, err := k.Run(testContext(t), frames, nil)
	if err != nil || !cell.OK() {
		t.Fatalf("%+v, %v", cell, err)
	}
	shows := func(code string) string {
		if k.Info().Flavor == "ipython" {
			if cell, err := k.Run(testContext(t), showData, nil); err != nil || !cell.OK() {
				t.Fatalf("%+v, %v, want that data can be shown", cell, err)
			}
		}
		cell, err := k.Run(testContext(t), code, nil)
		if err != nil || !cell.OK() {
			t.Fatalf("%s: %+v, %v", code, cell, err)
		}
		result := resultOf(cell.Value, true)
		delete(result, "html")
		delete(result, "text")
		text, err := json.Marshal(result)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	const nothing = `{"is_main_result":true,"type":"result"}`
	for code, want := range map[string]string{ // which IPython shows
		`{"a": [1, 0.0, None, {"b": True}]}`: `{"is_main_result":true,"json":{"a":[1,0.0,null,{"b":true}]},"type":"result"}`,
		"[object]":                           `{"is_main_result":true,"json":["\u003cclass 'object'\u003e"],"type":"result"}`,
		"x = [1]; x.append(x); x":            nothing,
		"[float('inf')]":                     nothing,
		"{(1, 2): 3}":                        nothing,
		"['x' * (1 << 20)]":                  nothing,
		"DataFrame()":                        `{"data":{"n":[1,null],"0":["a","2024-01-01T00:00:00"]},"is_main_result":true,"type":"result"}`,
	} {
		switch {
		case k.Info().Flavor == "ipython":
		case code == "DataFrame()":
			want = `{"extra":{"text/csv":"n,0"},"is_main_result":true,"type":"result"}`
		default:
			want = nothing
		}
		if got := shows(code); got != want {
			t.Errorf("%s (%s): %s, want %s", code, k.Info().Flavor, got, want)
		}
	}
}

// frames is a module that is pandas as far as forms of a data frame ask for it.
const frames = `
import datetime
class Column(list):
    tolist = lambda self: list(self)
class Places:
    def __getitem__(self, place):
        return [Column([1, float("nan")]), Column(["a", datetime.datetime(2024, 1, 1)])][place[1]]
class DataFrame:
    columns = ["n", 0]
    iloc = Places()
    head = lambda self, n: self
    to_csv = lambda self: "n,0"
    _repr_html_ = lambda self: "<table></table>"
DataFrame.__module__ = "pandas.core.frame"
`
