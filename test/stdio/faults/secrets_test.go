//go:build unix

package faults

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
	"github.com/mcp-proxy/mcp-proxy/test/stdio"
)

// secrets are all that the configuration below knows, by where they stand.
var secrets = map[string]string{
	"token of a client":          "s3cr3t-client-token-0001",
	"variable of the proxy":      "s3cr3t-variable-own-0002",
	"variable of a child":        "s3cr3t-child-api-key-0003",
	"variable of another child":  "s3cr3t-other-child-0004",
	"line of an env file":        "s3cr3t-env-file-0005",
	"auth_token":                 "s3cr3t-auth-token-0006",
	"authorization header":       "s3cr3t-bearer-0007",
	"header":                     "s3cr3t-header-0008",
	"query of a url":             "s3cr3t-query-0009",
	"password in a url":          "s3cr3t-userinfo-0010",
	"password in a basic header": "s3cr3t-basic-0011",
	"file":                       "s3cr3t-file-0012",
	"first line of a key":        "s3cr3t-first-line-0013",
	"second line of a key":       "s3cr3t-second-line-0014",
}

// leaky is a child that tells everybody all it knows: on stderr, in its banner, and before it dies.
var _ = testmcp.Register("leaky", func([]string) *testmcp.Server {
	s := testmcp.Basic("leaky")
	tell := func(p *testmcp.Process) {
		for _, name := range []string{"API_KEY", "DB_PASSWORD", "FILE_TOKEN", "PRIVATE_KEY"} {
			v := os.Getenv(name)
			p.Stderr("starting with " + name + "=" + v + "\n")
			p.Stderr(strings.Repeat("x", 490) + v + "\n") // cut in the middle
			p.Stdout("using " + v + " for requests\n")
			p.Stdout(fmt.Sprintf("{%q:%q}\n", name, v))
		}
	}
	s.Start = tell
	s.Tools = append(s.Tools, testmcp.SimpleTool("blurt", func(c *testmcp.Call) {
		tell(c.Process())
		c.Process().Stderr("fatal: bad key " + os.Getenv("API_KEY") + "\n")
		c.Process().Exit(3)
	}))
	return s
})

// echoing serves what the given handler does not answer with the credentials of the request in every place.
func echoing(t *testing.T, how func(w http.ResponseWriter, r *http.Request, told string) bool) *testmcp.HTTPServer {
	t.Helper()
	return testmcp.ServeHTTP(t, testmcp.Basic("echoing"), testmcp.HTTPOptions{Before: func(w http.ResponseWriter, r *http.Request, _ []byte) bool {
		told := strings.Join([]string{r.Header.Get("Authorization"), r.Header.Get("X-Api-Key"), r.URL.RawQuery}, " ")
		if _, encoded, ok := strings.Cut(r.Header.Get("Authorization"), "Basic "); ok {
			plain, _ := base64.StdEncoding.DecodeString(encoded)
			told += " " + string(plain)
		}
		return how(w, r, told)
	}})
}

// echoes are the ways in which a server tells a credential back.
var echoes = map[string]func(w http.ResponseWriter, r *http.Request, told string) bool{
	"refusal": func(w http.ResponseWriter, r *http.Request, told string) bool {
		return says(w, r, 401, "bad credentials: "+told)
	},
	"rpc": func(w http.ResponseWriter, r *http.Request, told string) bool {
		body := `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":` + testmcp.Quote("bad credentials: "+told) + `}}`
		testmcp.Status(http.StatusOK, "application/json", body)(w, r)
		return true
	},
	"redirect": func(w http.ResponseWriter, r *http.Request, told string) bool {
		testmcp.Redirect(307, "http://192.0.2.1/login?from="+strings.ReplaceAll(told, " ", "+"))(w, r)
		return true
	},
	"garbage": func(w http.ResponseWriter, r *http.Request, told string) bool {
		testmcp.RawHTTP("HTTP/1.1 "+told+"\r\n\r\n")(w, r)
		return true
	},
}

func says(w http.ResponseWriter, r *http.Request, status int, text string) bool {
	testmcp.Status(status, "text/plain", text)(w, r)
	return true
}

// secretive is the configuration: every secret at its place, and upstreams that tell them.
func secretive(t *testing.T, dir string) string {
	t.Helper()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	quote := testmcp.Quote
	key := secrets["first line of a key"] + "\n" + secrets["second line of a key"] + "\n"
	leaky, other := testmcp.NewRecorder(t), testmcp.NewRecorder(t)
	entries := map[string]string{
		"leaky": stdio.EntryWith(leaky, map[string]string{"API_KEY": secrets["variable of a child"], "FILE_TOKEN": "${file:" + write("token", secrets["file"]+"\n") + "}",
			"PRIVATE_KEY": "${file:" + write("key", key) + "}"}, "leaky", nil,
			`"env_file":`+quote(write("env", "DB_PASSWORD="+secrets["line of an env file"]+"\n")), `"restart":{"initial_delay":"10ms"}`),
		"other": stdio.EntryWith(other, map[string]string{"API_KEY": secrets["variable of another child"]}, "basic", nil),
	}
	for how, f := range echoes {
		for what, more := range map[string]string{
			"token":  `"auth_token":` + quote(secrets["auth_token"]),
			"header": `"headers":{"Authorization":` + quote("Bearer "+secrets["authorization header"]) + `,"X-Api-Key":` + quote(secrets["header"]) + `}`,
			"basic":  `"headers":{"Authorization":` + quote("Basic "+base64.StdEncoding.EncodeToString([]byte("user:"+secrets["password in a basic header"]))) + `}`,
		} {
			url := echoing(t, f).URL
			entries[how+"-"+what] = `{"url":` + quote(url) + `,` + more + `}`
		}
		url := echoing(t, f).URL
		entries[how+"-query"] = `{"url":` + quote(url+"?api_key="+secrets["query of a url"]) + `}`
		entries[how+"-password"] = `{"url":` + quote(strings.Replace(url, "://", "://user:"+secrets["password in a url"]+"@", 1)) + `}`
	}
	entries["refused"] = `{"url":` + quote("http://user:"+secrets["password in a url"]+"@"+testmcp.RefusedAddr(t)+"/mcp?api_key="+secrets["query of a url"]) + `}`
	return testmcp.Config(`{"startup_grace":"5s","auth":{"tokens":[{"name":"me","token":"`+secrets["token of a client"]+`"}]},"log":{"level":"debug"}}`, entries)
}

func TestSecretsAreShownNowhere(t *testing.T) {
	t.Parallel()
	p := testmcp.StartProxy(t, secretive(t, t.TempDir()), testmcp.WithEnv("OWN_SECRET_TOKEN="+secrets["variable of the proxy"]))
	shown := map[string]string{}
	var kept []string
	for name, era := range stdio.Eras {
		c := testmcp.NewClient(t, p.URL, era)
		c.Header.Set("Authorization", "Bearer "+secrets["token of a client"])
		c.Open()
		for _, pid := range testmcp.Descendants(p.PID()) {
			kept = append(kept, strconv.Itoa(pid))
			shown["command line of "+strconv.Itoa(pid)] = read("/proc/" + strconv.Itoa(pid) + "/cmdline")
		}
		shown["a crash told to a "+name+" client"] = string(c.CallTool("leaky__blurt", "").Raw)
		shown["tools of a "+name+" client"] = string(c.Call("tools/list", "{}").Raw)
		shown["a call told to a "+name+" client"] = string(c.CallTool("rpc-token__any", "").Raw)
		bad := testmcp.NewClient(t, p.URL, era)
		bad.Header.Set("Authorization", "Bearer "+secrets["token of a client"]+"x")
		a := bad.Initialize()
		shown["a refusal of a "+name+" client"] = string(a.Body) + fmt.Sprint(a.Header)
	}
	if len(kept) == 0 {
		t.Error("no child was found")
	}
	for _, page := range []string{"/", "/api/v1/status", "/readyz", "/healthz", "/metrics"} {
		shown[page] = withToken(t, p.Base+page)
		if !strings.Contains(shown[page], "leaky") && page != "/healthz" {
			t.Errorf("%s does not tell about the upstreams: %.300s", page, shown[page])
		}
	}
	p.WaitLog("code 3")
	checkOwn(t, p)
	shown["log"] = strings.Join(p.Log(), "\n")
	for where, text := range shown {
		for what, secret := range secrets {
			// A part of a secret is one too.
			if at := strings.Index(text, secret[:12]); at >= 0 {
				t.Errorf("%s shows %s: …%.200s…", where, what, text[max(0, at-80):])
			}
		}
	}
}

// checkOwn verifies that a child has of the environment only what is meant for it.
func checkOwn(t *testing.T, p *testmcp.Proxy) {
	t.Helper()
	for _, pid := range testmcp.Descendants(p.PID()) {
		env := read("/proc/" + strconv.Itoa(pid) + "/environ")
		foreign := []string{secrets["variable of the proxy"], secrets["token of a client"], secrets["auth_token"]}
		if strings.Contains(env, secrets["variable of another child"]) {
			foreign = append(foreign, secrets["variable of a child"])
		}
		for _, secret := range foreign {
			if strings.Contains(env, secret) {
				t.Errorf("a child has %q in its environment", secret)
			}
		}
	}
}

func TestCheckShowsNoSecrets(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	config := secretive(t, dir)
	for _, args := range [][]string{{"check", "--print"}, {"check", "--connect"}} {
		ran := testmcp.Run(t, map[string]string{"mcp-proxy.json": config}, []string{"OWN_SECRET_TOKEN=" + secrets["variable of the proxy"]}, args...)
		for what, secret := range secrets {
			if strings.Contains(ran.Stdout+ran.Stderr, secret) {
				t.Errorf("%v shows %s", args, what)
			}
		}
		if !strings.Contains(ran.Stdout, "leaky") {
			t.Errorf("%v says nothing of the upstreams: %.500s %.500s", args, ran.Stdout, ran.Stderr)
		}
	}
}

func read(path string) string {
	b, _ := os.ReadFile(path) // a process that is gone shows nothing
	return string(b)
}

func withToken(t *testing.T, url string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+secrets["token of a client"])
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d %v", url, resp.StatusCode, err)
	}
	return string(b)
}
