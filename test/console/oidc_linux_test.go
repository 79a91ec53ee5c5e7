package console

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// issue starts an issuer, which ends with the test.
func issue(t *testing.T) (address string) {
	t.Helper()
	_, err := os.Stat(web + "/node_modules/oidc-provider")
	require(t, err)
	cmd := exec.Command("node", "testdata/issuer.mjs")
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stdin.Close()
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line)
}

// visit logs in with the issuer by a name, from the page of the login.
func (p *page) visit(name string) {
	p.t.Helper()
	p.click("Log in with " + strings.TrimPrefix(p.s.issuer, "http://"))
	ctx, cancel := context.WithTimeout(p, waitTime)
	defer cancel()
	const consent = `//button[normalize-space()="Continue"]`
	if err := chromedp.Do(ctx, chromedp.SendKeys(`input[name="login"]`, name), chromedp.SendKeys(`input[name="password"]`, "any\r"), chromedp.Click(consent)); err != nil {
		p.fatal(err, "log in with the issuer")
	}
	if err := chromedp.Do(ctx, chromedp.WaitVisible(`.shell, [role="alert"]`)); err != nil {
		p.fatal(err, "come back from the issuer")
	}
}

// TestIssuer: people log in with an issuer that others have made, to the project of their group and with its scopes, and whom no grant lets in stays out.
func TestIssuer(t *testing.T) {
	issuer := issue(t)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("a secret of the test\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, keys := serveWith(t, []string{
		"--oidc-issuer", issuer, "--oidc-client-id", "console", "--oidc-client-secret-file", secret, "--oidc-scope", "groups",
		"--oidc-grant", "builds=groups=engineers", "--oidc-grant", "builds:read=groups=staff",
	}, "builds")
	s.issuer = issuer
	var sb struct{ ID string }
	if err := json.Unmarshal([]byte(s.ask(keys[0], http.MethodPost, "/v1/sandboxes", `{"language": "bash"}`)), &sb); err != nil {
		t.Fatal(err)
	}
	anna, bob, eve := s.browse(), s.browse(), s.browse()
	anna.open("/")
	anna.visit("anna")
	anna.seeText(".who", "anna@example.org")
	anna.choose("language", "bash")
	anna.code(".editor", "echo I am $((6*7))")
	anna.click("Run")
	anna.seeText(".output pre", "I am 42")
	anna.click("Sandboxes")
	anna.seeText(".id", sb.ID)
	anna.click("Log out")
	anna.see(`document.querySelector("#key")`)

	bob.open("/sandboxes")
	bob.visit("bob")
	bob.seeText(".who", "bob@example.org")
	bob.see(`[...document.querySelectorAll("button")].find((e) => e.textContent.trim() === "Run").disabled`)

	eve.open("/")
	eve.visit("eve")
	eve.seeText(`[role="alert"]`, "no access to this server")
	eve.login(keys[0])

	log := s.run("serve", "audit", "--json")
	for _, want := range []string{
		`"key_id":"oidc:anna","key_name":"anna@example.org"`, `"action":"login","outcome":"ok","detail":"anna of ` + issuer, `"action":"login","outcome":"no_grant","detail":"eve of ` + issuer, `"action":"run"`,
	} {
		if !strings.Contains(log, want) {
			t.Errorf("the audit log has %s\nwant %s", log, want)
		}
	}
}
