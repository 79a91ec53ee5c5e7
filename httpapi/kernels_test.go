package httpapi

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/apitypes"
)

// TestKernels: cells keep their state, whatever becomes of one of them.
func TestKernels(t *testing.T) {
	c := serve(t, Config{})
	path, _ := c.create(`{"language": "python"}`)
	var k apitypes.Kernel
	c.want(http.StatusCreated, &k, http.MethodPost, path+"/kernels", `{"plain": true, "env": {"A": "b"}}`)
	if k.Language != "python" || k.Version == "" || k.Flavor != "plain" {
		t.Errorf("opened %+v, want what the interpreter says of itself", k)
	}
	one := path + "/kernels/" + k.ID
	for _, step := range []struct {
		body   string
		status llmsandbox.Status
		want   func(cell) bool
	}{
		{`{"code": "x = 40\nprint('out')"}`, llmsandbox.StatusOK, func(c cell) bool { return c.Stdout == "out\n" && c.Count == 1 }},
		{`{"code": "x + 2"}`, llmsandbox.StatusOK, func(c cell) bool { return c.Value["text/plain"] == "42" }},
		{`{"code": "1 / 0"}`, llmsandbox.StatusError, func(c cell) bool { return c.Error != nil && c.Error.Name == "ZeroDivisionError" }},
		{`{"code": "import os; os.environ['A'] + input() + input('?')", "stdin": ["c", "d\n"]}`, llmsandbox.StatusOK, func(c cell) bool { return c.Value["text/plain"] == "'bcd'" }},
		{`{"code": "input()"}`, llmsandbox.StatusError, func(c cell) bool { return c.Error != nil && c.Error.Name == "EOFError" }},
		{`{"code": "while True: pass", "timeout_seconds": 0.5}`, llmsandbox.StatusTimeout, func(c cell) bool { return !c.StateLost }},
		{`{"code": "x"}`, llmsandbox.StatusOK, func(c cell) bool { return c.Value["text/plain"] == "40" }},
	} {
		var got cell
		c.want(http.StatusOK, &got, http.MethodPost, one+"/cells", step.body)
		if got.Status != step.status || !step.want(got) {
			t.Errorf("%s: %+v, want another cell, with status %s", step.body, got, step.status)
		}
	}
	_, text := c.do(http.MethodPost, one+"/cells", `{"code": "print(x)"}`, "Accept: text/event-stream")
	if got := streamed(t, text); got[0] != "40\n" || !strings.HasPrefix(got[2], `result {"status":"ok"`) {
		t.Errorf("%q, want the output and the result", got)
	}
	var asked struct {
		Matches   []string
		Text      string
		Variables []llmsandbox.Variable
		Kernels   []apitypes.Kernel
	}
	c.want(http.StatusOK, &asked, http.MethodPost, one+"/complete", `{"code": "prin", "cursor": 4}`)
	c.want(http.StatusOK, &asked, http.MethodPost, one+"/inspect", `{"code": "len", "cursor": 3}`)
	c.want(http.StatusOK, &asked, http.MethodGet, one+"/variables", "")
	c.want(http.StatusOK, &asked, http.MethodGet, path+"/kernels", "")
	has := func(v llmsandbox.Variable) bool { return v.Name == "x" && v.Value == "40" }
	if !slices.ContainsFunc(asked.Matches, func(m string) bool { return strings.HasPrefix(m, "print") }) || asked.Text == "" || !slices.ContainsFunc(asked.Variables, has) || len(asked.Kernels) != 1 || asked.Kernels[0].ID != k.ID {
		t.Errorf("%+v, want print, what len is, x and the kernel", asked)
	}
	c.want(http.StatusNoContent, nil, http.MethodPost, one+"/interrupt", "")
	c.want(http.StatusNoContent, nil, http.MethodPost, one+"/restart", "")
	var got cell
	if c.want(http.StatusOK, &got, http.MethodPost, one+"/cells", `{"code": "x"}`); got.Error == nil || got.Error.Name != "NameError" {
		t.Errorf("after a restart: %+v, want that x is gone", got)
	}
	c.want(http.StatusNoContent, nil, http.MethodPost, one+"/reset", "")
	for _, r := range [][3]string{
		{http.MethodPost, one + "/cells", `{"code": "1"}`}, {http.MethodPost, one + "/interrupt", ""}, {http.MethodGet, one + "/variables", ""}, {http.MethodDelete, one, ""},
		{http.MethodPost, path + "/kernels", `{}`}, {http.MethodGet, path + "/kernels", ""}, {http.MethodPost, one + "/complete", `{"code": "", "cursor": 0}`},
	} {
		c.as(keyB).want(http.StatusNotFound, nil, r[0], r[1], r[2])
	}
	c.want(http.StatusUnprocessableEntity, nil, http.MethodPost, one+"/complete", `{"code": "prin", "cursor": 5}`)
	c.as(keyAReads).want(http.StatusForbidden, nil, http.MethodPost, one+"/cells", `{"code": "1"}`)
	c.want(http.StatusUnprocessableEntity, nil, http.MethodPost, path+"/kernels", `{"language": "cobol"}`)
	c.want(http.StatusNoContent, nil, http.MethodDelete, one, "")
	c.want(http.StatusNotFound, nil, http.MethodPost, one+"/cells", `{"code": "1"}`)
}
