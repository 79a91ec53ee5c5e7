package e2b

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/artifact"
)

// showData is Python that has IPython show what lists, dictionaries and data frames hold. It is no cell of the client's, and leaves no names.
const showData = `
def _show_data():
    import json
    def plain(value):
        if value is None or value != value:
            return None
        return value.isoformat() if hasattr(value, "isoformat") else str(value)
    def data(value):
        try:
            text = json.dumps(value, allow_nan=False, default=plain)
            return json.loads(text) if len(text) <= 1 << 20 else None
        except (TypeError, ValueError, RecursionError):
            return None
    def table(frame):
        def cell(value):
            return None if value is None or value != value else value
        try:
            return data({"data frame": {str(name): [cell(v) for v in frame.iloc[:, i].tolist()] for i, name in enumerate(frame.columns)}})
        except Exception:
            return None
    show = get_ipython().display_formatter.formatters["application/json"]
    show.for_type(list, data)
    show.for_type(dict, data)
    for module in ("pandas", "pandas.core.frame"):
        show.for_type_by_name(module, "DataFrame", table)
_show_data()
del _show_data
`

// mediaKeys are the keys of a result, by media type.
var mediaKeys = map[string]string{
	artifact.Text: "text", artifact.HTML: "html", artifact.Markdown: "markdown", artifact.SVG: "svg", artifact.PNG: "png", artifact.JPEG: "jpeg",
	artifact.PDF: "pdf", artifact.LaTeX: "latex", artifact.JSON: "json", "application/javascript": "javascript",
}

// resultOf is a result of forms by media type, of which those that are not text are base64.
func resultOf(forms map[string]string, isMain bool) record {
	result, extra := record{"type": "result", "is_main_result": isMain}, map[string]string{}
	for mime, form := range forms {
		switch key := mediaKeys[mime]; {
		case key == "":
			extra[mime] = form
		case key == "text":
			result[key] = unquoted(form)
		case key != "json":
			result[key] = form
		case json.Valid([]byte(form)):
			var frame struct {
				Columns json.RawMessage `json:"data frame"` // as showData has them
			}
			if json.Unmarshal([]byte(form), &frame) == nil && frame.Columns != nil {
				result["data"] = frame.Columns
			} else {
				result[key] = json.RawMessage(form)
			}
		}
	}
	if result["data"] != nil {
		delete(extra, artifact.CSV)
	}
	if len(extra) > 0 {
		result["extra"] = extra
	}
	return result
}

// unquoted is a text without the quotes around it, in which Python shows strings.
func unquoted(s string) string {
	if n := len(s); n >= 2 && s[0] == s[n-1] && (s[0] == '\'' || s[0] == '"') {
		return s[1 : n-1]
	}
	return s
}

// resultOfArtifact is the result that a picture, table or file is.
func resultOfArtifact(a *llmsandbox.Artifact) record {
	forms := map[string]string{}
	for _, f := range append([]artifact.Form{{MIME: a.MIME, Data: a.Data}}, a.Also...) {
		switch f.MIME {
		case artifact.PNG, artifact.JPEG, artifact.PDF, artifact.Binary:
			forms[f.MIME] = base64.StdEncoding.EncodeToString(f.Data)
		default:
			forms[f.MIME] = string(f.Data)
		}
	}
	result := resultOf(forms, false)
	if chart := chartOf(a.Chart); chart != nil {
		result["chart"] = chart
	}
	if a.Source == "matplotlib" && result["text"] == nil {
		axes := 0
		if a.Chart != nil {
			axes = len(a.Chart.Axes)
		}
		result["text"] = fmt.Sprintf("<Figure size %dx%d with %d Axes>", a.Width, a.Height, axes)
	}
	return result
}

// linesOfCell are what became of code, but for its output: results, and an error if it ended with one.
func linesOfCell(c *llmsandbox.Cell) []record {
	var list []record
	for i := range c.Artifacts {
		list = append(list, resultOfArtifact(&c.Artifacts[i]))
	}
	if c.Value != nil {
		list = append(list, resultOf(c.Value, true))
	}
	if c.OK() {
		return list
	}
	name, value, traceback := "ExecutionError", c.Reason, c.Reason
	switch {
	case c.Error != nil:
		name, value, traceback = c.Error.Name, c.Error.Message, c.Error.Traceback
	case c.Status == llmsandbox.StatusTimeout:
		name = "TimeoutError"
	case c.Status == llmsandbox.StatusOutOfMemory:
		name = "MemoryError"
	case c.Status == llmsandbox.StatusRefused:
		name = "PolicyError"
	case c.StateLost, c.Status == llmsandbox.StatusLost:
		name = "ContextRestarting"
	case c.Interrupted:
		name = "KeyboardInterrupt"
	case c.Status == llmsandbox.StatusError:
		name, value = "SystemExit", strconv.Itoa(c.ExitCode)
	}
	list = append(list, record{"type": "error", "name": name, "value": value, "traceback": traceback})
	if c.Status == llmsandbox.StatusLost {
		list = append(list, record{"type": "unexpected_end_of_execution"})
	}
	return list
}

// setters are, by language, code that sets variables, and code that sets them back: both around %s. The code between may change what is
// remembered, as it may the variables.
var setters = map[string]struct {
	set, restore string
	literal      func(map[string]string) string
}{
	"python": {
		`setattr(__import__("os"), "_execution_env", [(k, __import__("os").environ.get(k)) for k in %[1]s]) or __import__("os").environ.update(%[1]s)`,
		`([__import__("os").environ.pop(k, None) if v is None else __import__("os").environ.update({k: v}) for k, v in __import__("os").__dict__.pop("_execution_env", [])], None)[1]`,
		jsonObject,
	},
	"javascript": {jsSet, jsRestore, jsonObject},
	"typescript": {jsSet, jsRestore, jsonObject},
	"bash": {`eval %s`, `eval "$_execution_env"; unset _execution_env`, func(vars map[string]string) string {
		var set, save strings.Builder
		for _, name := range namesOf(vars) {
			// What the variable is now, as code: a declaration, or that there is none.
			fmt.Fprintf(&save, "$(declare -p %[1]s 2>/dev/null || echo unset %[1]s);", name)
			fmt.Fprintf(&set, "export %s=%s;", name, shellQuoted(vars[name]))
		}
		return shellQuoted("_execution_env=\"" + save.String() + "\";" + set.String())
	}},
	"r": {
		`invisible({options(execution.env = Sys.getenv(names(%[1]s), unset = NA, names = TRUE)); do.call(Sys.setenv, %[1]s)})`,
		`invisible(local({e <- getOption("execution.env"); for (n in names(e)) if (is.na(e[[n]])) Sys.unsetenv(n) else do.call(Sys.setenv, setNames(list(e[[n]]), n)); options(execution.env = NULL)}))`,
		func(vars map[string]string) string {
			var list []string
			for _, name := range namesOf(vars) {
				list = append(list, "`"+name+"`="+jsonQuoted(vars[name]))
			}
			return "list(" + strings.Join(list, ",") + ")"
		},
	},
	// Java cannot change its environment. What code reads are system properties.
	"java": {
		`{ var m = new java.util.HashMap<String, String>(); for (var e : java.util.Map.ofEntries(%s).entrySet()) m.put(e.getKey(), System.setProperty(e.getKey(), e.getValue())); System.getProperties().put("execution.env", m); }`,
		`{ var m = (java.util.Map<String, String>) System.getProperties().remove("execution.env"); if (m != null) m.forEach((k, v) -> { if (v == null) System.clearProperty(k); else System.setProperty(k, v); }); }`,
		func(vars map[string]string) string {
			var list []string
			for _, name := range namesOf(vars) {
				list = append(list, "java.util.Map.entry("+jsonQuoted(name)+","+jsonQuoted(vars[name])+")")
			}
			return strings.Join(list, ",")
		},
	},
}

const (
	jsSet     = `void (globalThis[Symbol.for("execution.env")] = Object.keys(%[1]s).map((k) => [k, process.env[k]]), Object.assign(process.env, %[1]s))`
	jsRestore = `void (globalThis[Symbol.for("execution.env")] ?? []).forEach(([k, v]) => { if (v === undefined) delete process.env[k]; else process.env[k] = v })`
)

// jsonQuoted is a string as a literal of JSON, which is one of other languages as well.
func jsonQuoted(s string) string {
	text, _ := json.Marshal(s) // never fails
	return string(text)
}

func jsonObject(vars map[string]string) string {
	text, _ := json.Marshal(vars) // never fails
	return string(text)
}

func shellQuoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

func namesOf(vars map[string]string) []string {
	list := make([]string, 0, len(vars))
	for name := range vars {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

// environmentOf returns code that sets the variables of an execution, and code that sets them back; empty: there are none.
func environmentOf(lang string, vars map[string]string) (set, restore string, err error) {
	if len(vars) == 0 {
		return "", "", nil
	}
	s, ok := setters[lang]
	if !ok {
		return "", "", errors.New("this server cannot set variables of one execution in " + lang + ": those of the sandbox are there")
	}
	for name, value := range vars {
		if strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") != "" || name == "" || name[0] >= '0' && name[0] <= '9' {
			return "", "", fmt.Errorf("%q is no name of a variable: it may have letters, digits and _, and begins with no digit", name)
		}
		if strings.Contains(value, "\x00") {
			return "", "", errors.New("the value of " + name + " has a NUL")
		}
	}
	return fmt.Sprintf(s.set, s.literal(vars)), s.restore, nil
}
